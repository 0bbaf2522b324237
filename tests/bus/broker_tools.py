"""What the bus tests look through and act with: the broker's own interface, spies, a door that can be shut, entries."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

from muster_bus.connection import Bus, Incoming
from muster_bus.embedded import Server
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_bus.read import Raw, read_subject
from muster_protocol.messages import Answer, AnswerStatus, PlanRecorded, Result, ResultStatus, Taken
from muster_protocol.plan import Plan, TaskSpec

TAGS = ["a", "b", "c", "d", "e", "f"]
LIMIT_SECONDS = 60.0
CALM = 3.0  # the ack wait of the tag `calm`: a machine that stands still for a second or two loses no lease of it


async def until(is_so: Callable[[], bool], what: str, within: float = LIMIT_SECONDS) -> None:
    """Wait for something that no event tells."""
    limit = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < limit, f"not within {within} s: {what}"
        await asyncio.sleep(0.005)


async def until_asked(ask: Callable[[], Awaitable[bool]], what: str, within: float = LIMIT_SECONDS) -> None:
    """Wait for something that only the broker knows."""
    limit = time.monotonic() + within
    while not await ask():
        assert time.monotonic() < limit, f"not within {within} s: {what}"
        await asyncio.sleep(0.02)


async def api(bus: Bus, subject: str, ask: dict[str, Any] | None = None, within: float = 10.0) -> dict[str, Any]:
    """The broker's own interface, without a library between."""
    reply = await bus.nc.request(f"$JS.API.{subject}", json.dumps(ask or {}).encode(), timeout=within)
    answer: dict[str, Any] = json.loads(reply.data)
    assert "error" not in answer, answer
    return answer


async def change_stream(bus: Bus, name: str, **fields: Any) -> None:
    config = (await api(bus, f"STREAM.INFO.{name}"))["config"]
    await api(bus, f"STREAM.UPDATE.{name}", {**config, **fields})


async def consumer(bus: Bus, name: str, stream: str = "TASKS") -> dict[str, Any]:
    return await api(bus, f"CONSUMER.INFO.{stream}.{name}")


async def errors(bus: Bus) -> list[Raw]:
    return await read_subject(bus.nc, "ERRORS", "errors", from_leader=True)


async def put_task(bus: Bus, tag: str, body: str) -> None:
    await bus.publisher.store(f"tasks.{tag}", body.encode(), {"Nats-Msg-Id": secrets.token_hex(8)})  # once, if retried


def pause(server: Server) -> None:
    """Stop a broker in the middle of whatever it does; returns when it stands still."""
    server.signal(signal.SIGSTOP)
    os.waitpid(server.pid, os.WUNTRACED)


def go_on(server: Server) -> None:
    server.signal(signal.SIGCONT)


class Spy:
    """Everything that is said on a subject, as it is said."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.heard: list[Incoming] = []

    @classmethod
    async def on(cls, bus: Bus, subject: str) -> Self:
        spy = cls(bus)
        await bus.subscribe(subject, spy._hear)
        await bus.flush()
        return spy

    def _hear(self, message: Incoming) -> None:
        self.heard.append(message)

    def words_about(self, delivery: Delivery) -> list[bytes]:
        """What was said about one delivery."""
        return [message.data for message in self.heard if message.subject == delivery.lease.reply]


class Hands:
    """A pull whose handlers hold what they get until they are let go."""

    def __init__(self, bus: Bus, consumers: list[str], slots: int, ack_wait: float = 1.0) -> None:
        self.pull = Pull(bus, "TASKS", consumers, slots, ack_wait, self._hold)
        self.got: asyncio.Queue[Delivery] = asyncio.Queue()
        self.all: list[Delivery] = []
        self.most = 0
        self._held: dict[str, asyncio.Event] = {}
        self._holds = True
        self._is_closed = False

    async def _hold(self, delivery: Delivery) -> None:
        self.all.append(delivery)
        self.most = max(self.most, len(self.pull.running))
        self.got.put_nowait(delivery)
        if self._holds:
            await self._held.setdefault(delivery.lease.reply, asyncio.Event()).wait()

    def let_go(self, delivery: Delivery) -> None:
        self._held.setdefault(delivery.lease.reply, asyncio.Event()).set()

    def hold_nothing(self) -> None:
        """Let go of everything, also of what comes later."""
        self._holds = False
        for held in self._held.values():
            held.set()

    async def next(self, within: float = LIMIT_SECONDS) -> Delivery:
        async with asyncio.timeout(within):
            return await self.got.get()

    async def stop_pulling(self) -> list[asyncio.Task[None]]:
        self._is_closed = True
        return await self.pull.close()

    async def close(self) -> None:
        """Stop as a service does; the second time nothing is left to do."""
        self.hold_nothing()
        if not self._is_closed:
            await self.stop_pulling()
        if self.pull.running:
            await asyncio.wait(list(self.pull.running), timeout=5)
        self.pull.stop()


class Gate:
    """A door between a client and the broker: shut, open, or letting nothing back."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()
        self._ways: set[asyncio.Task[None]] = set()
        self.port = 0
        self.is_deaf = False
        self.said = bytearray()  # by the client, as it goes over the wire

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def open(self) -> None:
        self.is_deaf = False
        self._server = await asyncio.start_server(self._let_in, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        if self._server is not None:
            self._server.close()
        for way in self._ways:
            way.cancel()
        if self._passing:
            await asyncio.wait(self._passing, timeout=5)

    def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = asyncio.create_task(self._pass(reader, writer))
        self._passing.add(passing)
        passing.add_done_callback(self._passing.discard)

    def _note(self, said: bytes) -> bool:
        self.said += said
        return True

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._broker_port)
        ways = {
            asyncio.create_task(_carry(reader, broker_writer, self._note)),
            asyncio.create_task(_carry(broker_reader, writer, lambda _: not self.is_deaf)),
        }
        self._ways |= ways
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, broker_writer):
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()
        self._ways -= ways


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: Callable[[bytes], bool]) -> None:
    with contextlib.suppress(OSError):
        while said := await reader.read(65_536):
            if may_pass(said):
                writer.write(said)
                await writer.drain()


def taken(instance: str = "s1", delivery: int = 1) -> Taken:
    return Taken(
        instance=instance, delivery=delivery, team="default", deadline=9e9, request_hash="x", request_sequence=1
    )


def plan(goal: str = "a test") -> PlanRecorded:
    tasks = (TaskSpec(id="t1", description="look", tag="a"), TaskSpec(id="t2", description="see", tag="b"))
    plan_entry = Plan(goal=goal, tasks=tasks)
    return PlanRecorded(plan=plan_entry, team="default", request_hash="x", deadline=9e9, in_flight=8)


def result(task_id: str = "t1", output: str = "found", request_id: str = "r1", worker: str = "w1") -> Result:
    return Result(
        request_id=request_id,
        task_id=task_id,
        attempt=1,
        status=ResultStatus.DONE,
        output=output,
        worker=worker,
        role="a",
    )


def answer(text: str = "done", request_id: str = "r1") -> Answer:
    return Answer(request_id=request_id, status=AnswerStatus.DONE, text=text)
