"""I6: a coordinator that dies in the middle of a conflict: another one, or itself started again, does the rest."""

import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.flow.conflict_tools import WITHIN, Contest, contest, start_two
from tests.guards import guards

STEPS = ["before:conflict", "after:conflict", "before:stops", "after:stops", "before:abort", "after:abort"]
QUICK = {"other": ("before:conflict", "before:abort"), "again": ("before:abort",)}


def steps(who: str) -> list[object]:
    """All of them in a sweep."""
    return [step if step in QUICK[who] else pytest.param(step, marks=pytest.mark.sweep) for step in STEPS]


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


async def until_dead(team: Contest, request_id: str) -> None:
    assert await team.ended("c1", WITHIN) == 137
    assert len(await team.found(request_id)) == 1


async def until_resolved(team: Contest, request_id: str) -> None:
    await team.until_logged("w2", "stopped: ", WITHIN)
    team.release("go")
    found = await team.resolved(request_id, await team.answer(request_id))
    assert [stop.worker for stop in found.stops] == ["w2"]


@guards(
    "services/coordinator/muster_coordinator/conflicts/resolve.py",
    "_put(self._unannounced, key, time.monotonic() + ANNOUNCE_SECONDS)",
    rule="I6",
    case="before:conflict",
    seconds=60,
)
@guards(
    "services/coordinator/muster_coordinator/conflicts/resolve.py",
    "self._expect_effect(stored)",
    rule="I6",
    case="before:abort",
    seconds=60,
)
@pytest.mark.parametrize("step", steps("other"))
async def test_what_one_coordinator_began_another_one_finishes(team: Contest, step: str):
    request_id = await start_two(team, coordinators=("c2",))
    await team.start("coordinator", "c1", die_at=step)
    team.signal("c2", signal.SIGSTOP)  # it hears everything, later
    await team.copy(await team.task_message())
    await until_dead(team, request_id)

    team.signal("c2", signal.SIGCONT)

    await until_resolved(team, request_id)


@pytest.mark.parametrize("step", steps("again"))
async def test_what_a_coordinator_began_it_finishes_when_it_is_started_again(team: Contest, step: str):
    request_id = await start_two(team, coordinators=())
    await team.start("coordinator", "c1", die_at=step)
    await team.copy(await team.task_message())
    await until_dead(team, request_id)

    await team.start("coordinator", "c1")

    await until_resolved(team, request_id)
