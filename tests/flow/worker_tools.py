"""A worker in the test's own process whose role cleans up slowly, and what a coordinator says to it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from muster_agent.team.file import load_team
from muster_bus.broker.queues import task_queue
from muster_bus.connection import Bus
from muster_bus.publish import Stored
from muster_bus.tracing.tracing import OFF, Tracing
from muster_protocol import subjects
from muster_protocol.conflict import SideId
from muster_protocol.messages import Abort, Check, Result
from muster_protocol.sender import Origin, Sender
from muster_testing.waiting import until_asked
from muster_worker.executor import Executor
from muster_worker.worker import Worker
from tests.bus import broker_tools
from tests.flow.in_process import task_of
from tests.flow.misbehaving_team import orders
from tests.harness import Muster

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scripted, run: "tests.misbehaving_role:clean_up"}
"""
WORKER = "here"
COORDINATOR = Sender("coordinator", "c1")


class Bench:
    """One worker, and the attempt `r1.t.1` that it is given."""

    def __init__(self, muster: Muster, worker: Worker) -> None:
        self.muster = muster
        self.worker = worker

    async def put(self, message_id: str = "r1.t.1", *, finishes: bool = False) -> int:
        """Store a message of the attempt; returns its place in TASKS."""
        task = task_of("t", description=orders(finishes=finishes))
        headers = {"sender": "supervisor/s1", "kind": task.kind, "Nats-Msg-Id": message_id}
        stored = await self.muster.bus.publisher.store(subjects.tasks("scripted"), task.body(), headers)
        assert not stored.is_duplicate
        return stored.sequence

    async def put_and_run(self, *, finishes: bool = False) -> int:
        sequence = await self.put(finishes=finishes)
        await self.until_traced("start")
        return sequence

    async def given_out_again(self, sequence: int) -> None:
        """Have the broker deliver its first message once more, as if the lease had run out."""
        (consumer,) = task_queue(["scripted"]).consumers
        await self.muster.bus.nc.publish(f"$JS.ACK.TASKS.{consumer}.1.{sequence}.1.0.0", b"-NAK")

        async def is_out() -> bool:
            return (await broker_tools.consumer(self.muster.bus, consumer))["delivered"]["consumer_seq"] > 1

        await until_asked(is_out, "a second delivery")

    async def until_traced(self, what: str, count: int = 1) -> None:
        await self.muster.until(lambda: len(self.muster.traces(what)) >= count, f"{count} × {what}")

    async def abort(self, sequence: int, keeps: int, reason: str = "another goes on") -> None:
        """As a coordinator stops the first delivery of a message."""
        side = SideId(worker=WORKER, delivery=1, task_sequence=sequence)
        await self._order(Abort(request_id="r1", attempts=(("t", 1),), reason=reason, side=side, keeps=keeps))

    async def checked(self) -> None:
        """Wait until the worker has answered a check: by then it has heard what was said before."""
        before = len(await self.events("started"))
        await self._order(Check(request_id="r1", attempts=(("t", 1),)))

        async def is_answered() -> bool:
            return len(await self.events("started")) > before

        await until_asked(is_answered, "the check is answered")

    async def _order(self, message: Abort | Check) -> Stored:
        nonce = str(asyncio.get_running_loop().time())
        return await self.muster.bus.store(message, Origin("r1", COORDINATOR, nonce=nonce))

    async def events(self, kind: str) -> list[dict[str, object]]:
        stored = await self.muster.bus.read(subjects.events("r1"), from_leader=True)
        return [json.loads(raw.data) for raw in stored if raw.headers["kind"] == kind]

    async def event(self, kind: str) -> dict[str, object]:
        """Wait for the first event of a kind."""

        async def is_there() -> bool:
            return bool(await self.events(kind))

        await until_asked(is_there, f"an event {kind}")
        return (await self.events(kind))[0]

    async def result(self, count: int = 1) -> Result:
        """Wait for so many results; the last of them."""

        async def is_there() -> bool:
            return len(await self.muster.results("r1")) >= count

        await until_asked(is_there, f"{count} results")
        return (await self.muster.results("r1"))[-1]


@asynccontextmanager
async def bench(muster: Muster, monkeypatch: pytest.MonkeyPatch, tracing: Tracing = OFF) -> AsyncGenerator[Bench]:
    monkeypatch.setenv("MUSTER_TEST_FOLDER", str(muster.folder))
    (muster.folder / "team.yaml").write_text(TEAM)
    bus = await Bus.connect(muster.broker.url, Sender("worker", WORKER), tracing=tracing)
    worker = Worker(bus, Executor(load_team(muster.folder / "team.yaml"), {}), slots=4)
    await worker.start()
    try:
        yield Bench(muster, worker)
    finally:
        await worker.stop(grace_seconds=0.0)
        await bus.close()
