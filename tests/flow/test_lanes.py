"""A high request is not held behind low ones, and these go on all the same, each by its weight."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus
from tests.harness import Muster, running

SLOTS = 4
SECONDS = 0.1
LANES = "priorities: {high: 8, normal: 4, low: 1}\n"


@pytest.fixture
async def lanes(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path, roles=LANES, in_flight=256) as muster:
        yield muster


def sleeping(count: int, seconds: float = SECONDS) -> list[dict[str, object]]:
    return [{"id": f"t{n}", "orders": {"sleep": seconds}} for n in range(count)]


async def started(muster: Muster, slots: int = SLOTS) -> None:
    await asyncio.gather(muster.start("worker", "w1", "--slots", str(slots)), muster.start("supervisor", "s1"))


async def test_a_high_request_starts_as_soon_as_low_tasks_end(lanes: Muster) -> None:
    await started(lanes)
    low = await lanes.submit(sleeping(200), priority="low")
    await lanes.until(lambda: len(lanes.traces("over")) > 2 * SLOTS, "low tasks run")

    high = await lanes.submit(sleeping(SLOTS), priority="high")
    answer = await lanes.answer(high)
    await lanes.client.cancel(low)

    assert answer.status is AnswerStatus.DONE
    begun = [trace["request"] for trace in lanes.traces()]
    taken = (await lanes.log(high))[0].time
    low_after = [trace for trace in lanes.traces() if trace["request"] == low and trace["time"] > taken]
    last_high = max(trace["time"] for trace in lanes.traces() if trace["request"] == high)
    print(begun.count(high), last_high - taken, [round(trace["time"] - taken, 3) for trace in low_after][:9])
