"""Functions in processes of their own hang, crash and lose their worker: they are gone, and everybody else goes on."""

import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from muster_protocol.messages import AnswerStatus
from tests.flow.isolated_team import apart, does
from tests.guards import guards
from tests.harness import Muster
from tests.isolation.calls import all_gone, is_alive
from tests.isolation.strange import started

GONE_SECONDS = 2.5  # a second, on a machine with nothing else to do
ROUNDS = 30
RATIO = 10  # of the neighbours' p99; four functions that spin share the machine with all services and the broker


@pytest.fixture
async def muster(tmp_path: Path) -> AsyncIterator[Muster]:
    async with apart(tmp_path) as muster:
        yield muster


async def until_many(muster: Muster) -> list[int]:
    await muster.until((muster.folder / "ready").exists, "all processes have started")
    pids = started(muster.folder)
    assert all(map(is_alive, pids))
    return pids


@guards(
    "libs/agent/muster_agent/isolation/pool.py",
    "self._settle(process, ending)",
    rule="I10",
    seconds=60,
)
async def test_a_cancel_ends_a_function_and_all_that_it_started_within_a_second(muster: Muster) -> None:
    request = await muster.submit([does("start many", number=9)])
    pids = await until_many(muster)

    began = time.monotonic()
    await muster.client.cancel(request, "enough")
    await all_gone(pids, GONE_SECONDS)

    print(f"all gone {time.monotonic() - began:.2f} s after the cancel")
    assert (await muster.answer(request)).status is AnswerStatus.CANCELLED
    await muster.until_settled("tasks.apart")


@pytest.mark.sweep
async def test_its_time_limit_ends_it_and_its_neighbour_goes_on(muster: Muster) -> None:
    late = {**does("start many", number=9), "timeout_seconds": 2.0, "max_attempts": 1}
    request = await muster.submit([late, {"id": "b", "orders": {"output": "fine"}}])
    pids = await until_many(muster)

    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    failed = {result.task_id: result.error for result in await muster.results(request)}
    assert failed["a"] is not None
    assert failed["a"].error_class == "timeout"
    assert failed["b"] is None
    await all_gone(pids, GONE_SECONDS)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("orders", "error_class", "text"),
    [
        ({"what": "use_at_once", "megabytes": 1024}, "resource", "used more than 128 MB of memory"),
        ({"what": "leave_at_once", "code": 3}, "logic", "ended by itself with exit code 3"),
        ({"what": "write_everywhere"}, "logic", "closed the connection to its worker, or wrote to it"),
        ({"what": "crash"}, "logic", "was ended by SIGSEGV"),
        ({"what": "no_json"}, "bad_output", "is not JSON: Object of type object is not JSON serializable"),
        ({"what": "bug"}, "logic", "KeyError: 'key'"),
    ],
)
async def test_what_a_function_did_is_said_and_its_worker_goes_on(
    muster: Muster, orders: dict[str, Any], error_class: str, text: str
) -> None:
    request = await muster.submit([does(**orders), {"id": "b", "orders": {"output": "fine"}}])
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    failures = [result.error for result in await muster.results(request) if result.error is not None]
    assert len(failures) >= 1
    assert {failure.error_class for failure in failures} == {error_class}
    assert all(text in failure.message for failure in failures), failures
    again = await muster.submit([does("run_one", "c")])
    assert (await muster.answer(again)).output == "it ran"
    assert muster.is_running("w1")


async def test_when_its_worker_is_killed_it_is_gone_and_another_worker_does_the_task(muster: Muster) -> None:
    request = await muster.submit([does("hang unless told", number=6)])
    pids = await until_many(muster)

    muster.kill("w1")
    muster.release("go")
    await all_gone(pids, GONE_SECONDS)
    await muster.start("worker", "w2", env={"SHOP_TOKEN": "another"})

    assert (await muster.answer(request)).output == "done at last"


@pytest.mark.sweep
async def test_a_worker_that_stops_hands_a_function_that_hangs_back(muster: Muster) -> None:
    request = await muster.submit([does("hang unless told", number=6)])
    pids = await until_many(muster)

    muster.signal("w1", signal.SIGTERM)
    muster.release("go")
    assert await muster.ended("w1") == 0
    assert not any(map(is_alive, pids))
    await muster.start("worker", "w2")

    assert (await muster.answer(request)).output == "done at last"


@pytest.mark.sweep
async def test_functions_that_spin_leave_their_neighbours_their_time(muster: Muster) -> None:
    before = await latencies(muster)
    busy = await muster.submit([does("spin", f"s{number}") for number in range(4)])
    await muster.until(lambda: muster.executions(busy).total() == 4, "four of them spin")

    meanwhile = await latencies(muster)

    print(f"p99 of a task beside four that spin: {meanwhile:.3f} s, before {before:.3f} s")
    assert meanwhile < RATIO * before
    await muster.client.cancel(busy)
    assert (await muster.answer(busy)).status is AnswerStatus.CANCELLED


async def latencies(muster: Muster) -> float:
    """The p99 of a request of one task for a neighbour."""
    took = list[float]()
    for _ in range(ROUNDS):
        began = time.monotonic()
        await muster.answer(await muster.submit([{"id": "n", "orders": {"output": 1}}]))
        took.append(time.monotonic() - began)
    return quantiles(took, n=100)[98]
