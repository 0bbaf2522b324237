"""A whole Muster for a test: a real broker, services in real processes, and eyes on the streams."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

from muster_bus.connection import Bus
from muster_bus.embedded import Server
from muster_bus.log import read_log
from muster_bus.publish import Stored
from muster_bus.read import Raw, read_subject
from muster_bus.topology import Backlog, Provisioning, backlog, provision
from muster_client import Client
from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.headers import Sender
from muster_protocol.messages import Answer, ErrorReport, LogBody, Result, Task
from muster_protocol.subjects import request_id

LEASE_SECONDS = 1.0
LIMIT_SECONDS = 60.0  # for what comes within one on a machine that does nothing else; who waits less long asserts it
ROOT = Path(__file__).parent.parent
TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: acting, tags: [other], run: "tests.scripted_role:act"}
  - {name: second, run: "tests.scripted_role:act"}
limits: {in_flight: %d, deadline_seconds: 300}
"""


class Muster:
    """One broker and its services."""

    def __init__(self, folder: Path, broker: Server, bus: Bus, client: Client) -> None:
        self.folder = folder
        self.broker = broker
        self.bus = bus
        self.client = client
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    async def start(self, service: str, instance: str, *options: str, env: dict[str, str] | None = None) -> None:
        """Start a service in its own process and wait until it pulls."""
        self.spawn(service, instance, *options, env=env)
        await self.until(lambda: "ready:" in self.said_by(instance), f"{instance} is ready", instance=instance)

    def spawn(self, service: str, instance: str, *options: str, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "tests.serve", service, instance, "--url", self.broker.url]
        output = (self.folder / f"{instance}.log").open("ab")
        with output:
            self._processes[instance] = subprocess.Popen(
                [*command, "--team", str(self.folder / "team.yaml"), *options],
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env={**os.environ, "TEST_FOLDER": str(self.folder), **(env or {})},
            )

    def say(self, sign: str) -> None:
        """Let the tasks go on that wait for a sign."""
        (self.folder / sign).touch()

    def said_by(self, instance: str) -> str:
        return (self.folder / f"{instance}.log").read_text(errors="replace")

    def signal(self, instance: str, number: signal.Signals) -> None:
        self._processes[instance].send_signal(number)

    def kill(self, instance: str) -> None:
        self._processes[instance].kill()
        self._processes[instance].wait()

    async def ended(self, instance: str, within: float = LIMIT_SECONDS) -> int:
        """The exit code of a service that ends by itself."""
        return await asyncio.to_thread(self._processes[instance].wait, within)

    async def submit(self, tasks: list[dict[str, Any]], **more: Any) -> str:
        plan = {"goal": "a test", "tasks": [_task(task) for task in tasks]}
        return await self.client.submit(plan=plan, **more)

    async def answer(self, request_id: str, within: float = LIMIT_SECONDS) -> Answer:
        return await self.client.answer(request_id, timeout=within)

    async def log(self, request_id: str) -> list[Entry]:
        return await read_log(self.bus, request_id, from_leader=True)

    async def entries(self, request_id: str, kind: type[LogBody]) -> list[Entry]:
        return [entry for entry in await self.log(request_id) if isinstance(entry.body, kind)]

    async def state(self, request_id: str) -> RequestState:
        return fold(request_id, await self.log(request_id))

    async def results(self, request_id: str) -> list[Result]:
        return [entry.body for entry in await self.log(request_id) if isinstance(entry.body, Result)]

    async def errors(self) -> list[Raw]:
        return await read_subject(self.bus.nc, "ERRORS", "errors", from_leader=True)

    async def reasons(self) -> list[str]:
        return [ErrorReport.read(raw.data).reason for raw in await self.errors()]

    async def publish(self, subject: str, body: bytes, headers: Mapping[str, str] | None) -> Stored:
        """As anybody could: raw bytes, any headers."""
        return await store_once(self.bus, subject, body, headers)

    async def store_copy(self, subject: str, copy: Raw, age_seconds: float) -> Stored:
        """A task message stored once more under its own id, as if its reservation were older."""
        task = Task.read(copy.data)
        older = task.model_copy(update={"reserved_at": task.reserved_at - age_seconds})
        headers = {name: value for name, value in copy.headers.items() if not name.startswith("Nats-")}
        headers["Nats-Msg-Id"] = task.message_id
        return await self.bus.publisher.store(subject, older.model_dump_json().encode(), headers, give_up_after=5)

    def id_of(self, stored: Stored, body: bytes) -> str:
        return request_id(None, None, stored.sequence, body)

    async def until_settled(self, stream: str, consumer: str, within: float = LIMIT_SECONDS) -> None:
        """Wait until nothing waits for a consumer and nothing is being worked on: then its queue holds no message.

        The stream is asked: a consumer learns of a message a little after its sender does.
        """
        subject = consumer.replace("w_", "tasks.", 1) if stream == "TASKS" else consumer.replace("s_", "requests.", 1)
        limit = time.monotonic() + within
        while left := await read_subject(self.bus.nc, stream, subject, from_leader=True, is_page=True):
            assert time.monotonic() < limit, f"{len(left)} messages for {consumer} are left after {within} s"
            await asyncio.sleep(0.02)

    async def until_gone(self, stream: str, subject: str, sequence: int, within: float = LIMIT_SECONDS) -> None:
        """Wait until a message was settled."""
        limit = time.monotonic() + within
        while sequence in {raw.sequence for raw in await read_subject(self.bus.nc, stream, subject, from_leader=True)}:
            assert time.monotonic() < limit, f"#{sequence} is still in {stream} after {within} s"
            await asyncio.sleep(0.02)

    async def leave_room_for(self, stream: str, *, messages: int) -> None:
        """The stream takes so many messages and refuses the next."""
        js = self.bus.nc.jetstream(timeout=5)
        config = (await js.stream_info(stream)).config
        config.max_msgs = messages
        await js.update_stream(config)

    async def past_lease(self) -> None:
        """As long as it takes for every lease that nobody renews to run out: that is the fault, not a wait for it."""
        await asyncio.sleep(LEASE_SECONDS * 1.5)

    async def backlog(self, stream: str, consumer: str) -> Backlog:
        for _ in range(10):  # a busy broker may not answer within the two seconds of one try
            if (found := await backlog(self.bus, stream, consumer)) is not None:
                return found
        raise AssertionError(f"the broker says nothing about {consumer}")

    def traces(self, what: str = "start") -> list[dict[str, Any]]:
        path = self.folder / "trace.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        whole = (json.loads(line) for line in lines if line.endswith("\n"))  # the last may just be being written
        return [line for line in whole if line["what"] == what]

    def executions(self, request_id: str) -> Counter[str]:
        """How often each task of a request was begun."""
        return Counter(line["task"] for line in self.traces() if line["request"] == request_id)

    async def until(
        self, is_so: Callable[[], bool], what: str, within: float = LIMIT_SECONDS, instance: str | None = None
    ) -> None:
        """Wait for something outside the bus; a service that died meanwhile says why."""
        limit = time.monotonic() + within
        while not is_so():
            process = self._processes.get(instance or "")
            if process is not None and process.poll() is not None and not is_so():  # maybe with its last breath
                raise AssertionError(f"{instance} ended: {self.said_by(instance or '')[-2000:]}")
            assert time.monotonic() < limit, f"not within {within} s: {what}"
            await asyncio.sleep(0.01)

    async def until_log(self, request_id: str, is_so: Callable[[RequestState], bool]) -> None:
        """Wait until the log says so."""
        limit = time.monotonic() + LIMIT_SECONDS
        while not is_so(await self.state(request_id)):
            assert time.monotonic() < limit, f"the log of {request_id} did not get there within {LIMIT_SECONDS} s"
            await asyncio.sleep(0.02)

    def close(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


async def store_once(bus: Bus, subject: str, body: bytes, headers: Mapping[str, str] | None) -> Stored:
    """Store a message that has no id, in one try: a busy broker stores what it is late to acknowledge, and a second."""
    await bus.connected.wait()
    said = json.loads((await bus.nc.request(subject, body, timeout=LIMIT_SECONDS, headers=dict(headers or {}))).data)
    assert "error" not in said, said
    return Stored(said["seq"], said.get("duplicate", False))


def _task(task: dict[str, Any]) -> dict[str, Any]:
    orders = task.pop("does", {})
    return {"tag": "acting", "description": json.dumps(orders), **task}


@contextlib.asynccontextmanager
async def running(folder: Path, *, in_flight: int = 32, lease_seconds: float = LEASE_SECONDS) -> AsyncGenerator[Muster]:
    """A broker that is provisioned, and nobody else yet."""
    (folder / "team.yaml").write_text(TEAM % in_flight)
    broker = Server(folder / "broker")
    await broker.start()
    bus = await Bus.connect(broker.url, Sender("tests", "eyes"))
    settings = Provisioning(lease_seconds=lease_seconds, ack_wait_seconds=lease_seconds)
    await provision(bus, settings, ["default"], ["acting", "other", "second"])
    client = await Client.connect(broker.url)
    muster = Muster(folder, broker, bus, client)
    try:
        yield muster
    finally:
        muster.close()
        await client.close()
        await bus.close()
        await broker.stop()
