"""I6 at the coordinator: nobody stops for a side that was made up, and who has to stop hears it within a second."""

import asyncio
import time

from muster_bus.broker.queues import attempt_of_task
from muster_bus.buckets.conflicts import conflicts_of
from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Incoming
from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages import Check
from tests.flow.coordinator_harness import ServiceGroup, eventually
from tests.guards import guards


class Workers:
    """Workers that answer every check."""

    def __init__(self, group: ServiceGroup) -> None:
        self._group = group
        self._running: list[tuple[str, int, float]] = []
        self._checks: asyncio.Queue[Check] = asyncio.Queue()
        self._answering = asyncio.get_running_loop().create_task(self._answer())
        self.aborted_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def on_control(self, message: Incoming) -> None:
        kind = (message.headers or {}).get("kind")
        if kind == "check":
            self._checks.put_nowait(Check.read(message.data))
        elif kind == "abort" and not self.aborted_at.done():
            self.aborted_at.set_result(time.monotonic())

    async def run(self, worker: str, sequence: int, at: float = 0.0) -> None:
        await Bucket(self._group.bus, "workers").put(worker, b"{}")
        self._running.append((worker, sequence, at))
        await self._group.started(worker, task_sequence=sequence, at=at)

    async def _answer(self) -> None:
        while True:
            check = await self._checks.get()
            now = self._group.bus.clock.now()
            for worker, sequence, _ in self._running:
                await self._group.started(worker, task_sequence=sequence, at=max(now, check.at))

    def close(self) -> None:
        self._answering.cancel()


@guards(
    "services/coordinator/muster_coordinator/conflicts/resolve.py",
    "stored = [number for number in sequences if await attempt_of_task(self._bus, number) == key]",
    rule="I6",
    replace="stored = sequences",
    seconds=60,
)
async def test_nobody_stops_for_a_message_that_is_not_stored_or_is_of_another_attempt(group: ServiceGroup):
    await group.plan()
    other, message, copy = await group.task("b"), await group.task(), await group.task()
    workers = Workers(group)
    await group.bus.subscribe("control.r1", workers.on_control)
    await workers.run("w1", message)
    await workers.run("w2", other, at=1.0)
    await workers.run("w3", 999, at=1.0)
    await workers.run("w4", copy)

    async def is_decided() -> bool:
        found = await conflicts_of(group.bus, "r1")
        return bool(found and found[0].stops)

    await eventually(is_decided)
    workers.close()
    (found,) = await conflicts_of(group.bus, "r1")
    assert found.keep is not None
    assert found.keep.worker == "w1"
    assert [stop.worker for stop in found.stops] == ["w4"]
    assert min(side.started_at or 0.0 for side in found.sides) > found.found_at - 30  # nobody was first by saying so


async def test_the_attempt_of_a_task_message_is_read_from_its_body(group: ServiceGroup):
    message = await group.task()
    garbage = await group.store_raw("tasks.math", b"{broken")

    assert await attempt_of_task(group.bus, message) == AttemptId("r1", "a", 1)
    for sequence in (garbage, garbage + 1, 0, -1, 10**30):
        assert await attempt_of_task(group.bus, sequence) is None


async def test_the_loser_of_two_live_sides_is_told_to_stop_within_a_second(group: ServiceGroup):
    await group.plan()
    message, copy = await group.task(), await group.task()
    workers = Workers(group)
    await group.bus.subscribe("control.r1", workers.on_control)
    await workers.run("w1", message)
    await workers.run("w2", copy)
    stored_at = time.monotonic()

    async with asyncio.timeout(20):
        aborted_at = await workers.aborted_at

    workers.close()
    print(f"the abort was stored {(aborted_at - stored_at) * 1000:.0f} ms after the second start")
    assert aborted_at - stored_at < 2
