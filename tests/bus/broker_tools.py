"""What the bus tests use: the broker's own API, a recorder of messages, a pull that holds deliveries, log entries."""

import asyncio
import json
import secrets
from typing import Any, Self

from muster_bus.broker.queues import Queue
from muster_bus.connection import Bus, Incoming
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_bus.read_stream import Raw, read_subject
from muster_protocol.messages import Answer, AnswerStatus, PlanRecorded, Result, ResultStatus, Taken
from muster_protocol.plan import Plan, TaskSpec
from muster_testing.waiting import LIMIT_SECONDS

TAGS = ["a", "b", "c", "d", "e", "f"]
CALM = 3.0  # the ack wait of the tag `calm`: a machine that stands still for a second or two loses no lease of it


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
    return await read_subject(bus.nc, "errors", from_leader=True)


async def put_task(bus: Bus, tag: str, body: str) -> None:
    await bus.publisher.store(f"tasks.{tag}", body.encode(), {"Nats-Msg-Id": secrets.token_hex(8)})  # once, if retried


class Recorder:
    """Every message on a subject, in the order of arrival."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.messages: list[Incoming] = []

    @classmethod
    async def on(cls, bus: Bus, subject: str) -> Self:
        recorder = cls(bus)
        await bus.subscribe(subject, recorder._record)
        await bus.flush()
        return recorder

    def _record(self, message: Incoming) -> None:
        self.messages.append(message)

    def acks_of(self, delivery: Delivery) -> list[bytes]:
        """What was published about one delivery: acknowledgements and keep-alives."""
        return [message.data for message in self.messages if message.subject == delivery.lease.reply]


class HeldPull:
    """A pull whose handlers hold each delivery until the test releases it."""

    def __init__(self, bus: Bus, consumers: list[str], slots: int, ack_wait: float = 1.0) -> None:
        self.pull = Pull(bus, Queue("TASKS", tuple(consumers)), slots, ack_wait, self._hold)
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

    def release(self, delivery: Delivery) -> None:
        self._held.setdefault(delivery.lease.reply, asyncio.Event()).set()

    def release_all(self) -> None:
        """Release every delivery, also those that come later."""
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
        self.release_all()
        if not self._is_closed:
            await self.stop_pulling()
        if self.pull.running:
            await asyncio.wait(list(self.pull.running), timeout=5)
        self.pull.stop()


def taken(instance: str = "s1", delivery: int = 1) -> Taken:
    return Taken(
        instance=instance, delivery=delivery, team="default", deadline=9e9, request_hash="x", request_sequence=1
    )


def plan(goal: str = "a test") -> PlanRecorded:
    tasks = (TaskSpec(id="t1", description="look", tag="a"), TaskSpec(id="t2", description="see", tag="b"))
    return PlanRecorded(plan=Plan(goal=goal, tasks=tasks), team="default", request_hash="x", deadline=9e9, in_flight=8)


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
