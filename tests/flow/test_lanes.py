"""A high request is not held behind low ones, these go on all the same, and what is in a lane stays there."""

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from muster_agent.team.schema import Priorities
from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus
from tests.guards import guards
from tests.harness import Muster, running

SLOTS = 4
LANES = "workers: [alice]\npriorities: {high: 8, normal: 4, low: 1}\n"


@pytest.fixture
async def lanes(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path, roles=LANES, in_flight=256) as muster:
        yield muster


def sleeping(count: int, seconds: float) -> list[dict[str, Any]]:
    return [{"id": f"t{n}", "orders": {"sleep": seconds}} for n in range(count)]


async def start(muster: Muster, worker: str = "w1", slots: int = SLOTS) -> None:
    await asyncio.gather(muster.start("worker", worker, "--slots", str(slots)), muster.start("supervisor", "s1"))


async def test_a_high_request_starts_within_the_time_of_one_low_task(lanes: Muster) -> None:
    came: list[float] = []
    await lanes.bus.subscribe(subjects.tasks("scripted", "high"), lambda _: came.append(time.time()))
    await start(lanes)
    low = await lanes.submit(sleeping(200, 0.1), priority="low")
    await lanes.until(lambda: len(lanes.traces("over")) > 2 * SLOTS, "low tasks run")

    high = await lanes.submit(sleeping(SLOTS, 0.1), priority="high")
    answer = await lanes.answer(high)
    await lanes.client.cancel(low)

    assert answer.status is AnswerStatus.DONE
    begun = [trace for trace in lanes.traces() if trace["time"] > came[0]]
    last_high = max(place for place, trace in enumerate(begun) if trace["request"] == high)
    low_before = [trace["request"] for trace in begun[:last_high]].count(low)
    assert low_before <= SLOTS + 1, (
        "each slot may have begun one just before the high tasks came; one more has its turn"
    )


@guards(
    "libs/bus/muster_bus/lanes/turns.py",
    "key=lambda lane: (max(self.now, self.nexts[lane]), lane)",
    rule="I4",
    replace="key=lambda lane: lane",
)
async def test_a_low_request_has_its_share_while_high_work_never_ends(lanes: Muster) -> None:
    await start(lanes)
    high = await lanes.submit(sleeping(5000, 0.01), priority="high")
    await lanes.until(lambda: len(lanes.traces()) > 20, "high tasks run")

    low = await lanes.submit(sleeping(20, 0.01), priority="low")
    answer = await lanes.answer(low)
    await lanes.until(lambda: lanes.traces()[-1]["request"] == high, "high tasks go on")
    await lanes.client.cancel(high)

    assert answer.status is AnswerStatus.DONE
    order = [trace["request"] for trace in lanes.traces()]
    first, last = order.index(low), len(order) - order[::-1].index(low)
    weights = Priorities()
    assert order[first:last].count(low) / (last - first) >= weights.low / (weights.high + weights.low)


@guards("services/supervisor/muster_supervisor/steps/dispatch.py", "priority=owner.lane,", rule="I4", replace="")
async def test_retries_and_tasks_for_a_named_worker_stay_in_the_lane(lanes: Muster) -> None:
    heard: list[str] = []
    await lanes.bus.subscribe(subjects.ALL_TASKS, lambda message: heard.append(message.subject))
    await start(lanes, "alice")

    orders = [{"id": "a", "orders": {"fail": "not yet", "times": 1}}, {"id": "b", "worker": "alice"}]
    answer = await lanes.answer(await lanes.submit(orders, priority="low"))

    assert answer.status is AnswerStatus.DONE
    assert sorted(heard) == ["tasks.alice.low", "tasks.scripted.low", "tasks.scripted.low"]


async def test_a_takeover_goes_on_in_the_lane_and_each_task_has_one_result(lanes: Muster) -> None:
    """The supervisor is killed while the lanes are full."""
    await start(lanes)
    requests = [await lanes.submit(sleeping(20, 0.03), priority=lane) for lane in ("high", "normal", "low")]
    await lanes.until(lambda: len(lanes.traces("over")) > 6, "tasks run")

    lanes.kill("s1")
    await lanes.start("supervisor", "s2")

    for request in requests:
        assert (await lanes.answer(request)).status is AnswerStatus.DONE
        results = [result.task_id for result in await lanes.results(request)]
        assert sorted(results) == sorted(f"t{n}" for n in range(20))
        assert set(lanes.executions(request).values()) == {1}


@guards(
    "services/worker/muster_worker/lanes.py",
    'if lane == "normal" or (tag, lane) in found',
    rule="I1",
    replace='if lane == "normal"',
)
async def test_what_is_in_the_lanes_is_served_after_a_team_has_turned_them_off(lanes: Muster) -> None:
    await lanes.start("supervisor", "s1")
    requests = [await lanes.submit(sleeping(3, 0), priority=lane) for lane in ("high", "low")]
    for request in requests:
        await lanes.until_log(request, lambda state: state.in_flight == 3)
    await lanes.stop("s1")

    team = lanes.folder / "team.yaml"
    team.write_text(team.read_text().replace(LANES, ""))
    await start(lanes)

    assert [(await lanes.answer(request)).status for request in requests] == [AnswerStatus.DONE] * 2
    refused = await lanes.answer(await lanes.submit(sleeping(1, 0), priority="high"))
    assert (refused.status, "priority: team 'default' has no lanes" in refused.text) == (AnswerStatus.FAILED, True)
