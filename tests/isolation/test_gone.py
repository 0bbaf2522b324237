"""Whatever a function starts is gone with its process, wherever it put itself."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from muster_agent.isolation.errors import ProcessLost, TookTooLong
from muster_testing.waiting import until
from tests.guards import guards
from tests.isolation.calls import ROOMY_MB, Calls, all_gone, is_alive, parent_of
from tests.isolation.strange import started

KEEPER = "libs/agent/muster_agent/isolation/keeper.py"
ROOT = Path(__file__).parents[2]
CALLER = """
import asyncio
from tests.isolation.calls import Calls
asyncio.run(Calls().use("start_many", folder={folder!r}, number=9, seconds=600))
"""


@guards(KEEPER, "_ask_kernel(PR_SET_CHILD_SUBREAPER, 1)", rule="I10", case="12", seconds=30)
@pytest.mark.parametrize("number", [12, pytest.param(200, marks=pytest.mark.sweep)])
async def test_all_children_are_gone_after_a_cancel(calls: Calls, tmp_path: Path, number: int):
    using = asyncio.create_task(calls.use("start_many", folder=str(tmp_path), number=number, memory_mb=ROOMY_MB))
    await until((tmp_path / "ready").exists, "all have started")
    pids = started(tmp_path)
    assert all(map(is_alive, pids))
    assert len(pids) == number

    using.cancel()

    await asyncio.wait([using])
    began = time.monotonic()
    await all_gone(pids)
    print(f"{number} processes were gone after {time.monotonic() - began:.2f} s")


async def test_they_are_gone_when_the_time_is_up_and_the_error_says_how_many(calls: Calls, tmp_path: Path):
    with pytest.raises(TookTooLong, match=r"no output within 2 s and was ended with 9 processes .* raise timeout_sec"):
        await calls.use("start_many", folder=str(tmp_path), number=9, seconds=2)

    assert not any(map(is_alive, started(tmp_path)))


@guards(
    "libs/agent/muster_agent/isolation/pool.py",
    "elif ending.has_started:",
    replace="elif ending.has_started and self._is_closed:",
    rule="I10",
    seconds=30,
)
async def test_what_a_function_leaves_when_it_returns_is_ended(calls: Calls, tmp_path: Path):
    assert await calls.use("leave_one", folder=str(tmp_path)) == "returned"

    await all_gone(started(tmp_path))


async def test_a_function_that_runs_a_program_keeps_its_process(calls: Calls):
    first = await calls.use("pid")

    assert await calls.use("run_one") == "it ran"
    await until(lambda: calls.pool.idle == 1, "nothing else is running, which was looked up")

    assert await calls.use("pid") == first


async def test_a_process_that_ends_takes_all_that_it_started_along(calls: Calls, tmp_path: Path):
    using = asyncio.create_task(calls.use("start_many", folder=str(tmp_path), number=6))
    await until((tmp_path / "ready").exists, "all have started")

    for pid in set(map(parent_of, started(tmp_path))):  # the function's process, and its keeper, which adopted some
        os.kill(pid, signal.SIGTERM)

    with pytest.raises(ProcessLost):
        await using
    await all_gone(started(tmp_path))


async def test_when_the_worker_is_killed_nothing_is_left(tmp_path: Path):
    words = CALLER.format(folder=str(tmp_path))
    caller = await asyncio.create_subprocess_exec(sys.executable, "-c", words, cwd=ROOT)
    try:
        await until((tmp_path / "ready").exists, "all have started")
    finally:
        caller.kill()
        await caller.wait()

    await all_gone(started(tmp_path))


@guards(KEEPER, "if not said:", replace="if said is None:", rule="I10", seconds=30)
async def test_closing_the_pool_ends_what_waits_for_calls(calls: Calls):
    own = await calls.use("pid")

    await calls.pool.close()

    assert not is_alive(own)
