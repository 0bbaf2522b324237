"""A large request does not hold up a small one that comes later, also on the same tag."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from muster_protocol.fold import Entry
from muster_protocol.messages import AnswerStatus, LogBody, Reserved, Result
from muster_testing import running_team
from tests.harness import Muster

SMALL = 10
SLOTS = 4
ROUNDS = 3
IN_FLIGHT = 32


@pytest.mark.parametrize("large", [150, pytest.param(10_000, marks=pytest.mark.sweep)])
async def test_a_small_request_beside_a_large_one_waits_less_than_three_times_its_own_work(
    muster: Muster, large: int
) -> None:
    await muster.start("worker", "w1", "--slots", str(SLOTS))
    await muster.start("supervisor", "s1")
    first = await muster.submit([{"id": f"t{n}", "orders": {"sleep": 0.02}} for n in range(large)])
    await muster.until(lambda: len(muster.traces("over")) > 2 * SLOTS, "the large one runs")

    second = await muster.submit([{"id": f"t{n}", "orders": {"sleep": 0.02}} for n in range(SMALL)])
    answer = await muster.answer(second)
    started = [trace["request"] for trace in muster.traces()]
    await muster.client.cancel(first)

    assert answer.status is AnswerStatus.DONE
    while_it_ran = started[started.index(second) : len(started) - started[::-1].index(second)]
    assert len(while_it_ran) < 3 * SMALL, "of both requests"


NO_OP = "async def nothing(task, ctx):\n    return 'ok'\n"
NO_OP_TEAM = """\
team: quick
supervisor: {model: offline}
roles: [{name: quick, run: "quick_roles:nothing"}]
limits: {in_flight: %d}
"""


def no_ops(count: int) -> dict[str, Any]:
    return {"tasks": [{"id": f"t{n}", "description": "nothing", "tag": "quick"} for n in range(count)]}


@pytest.mark.parametrize("large", [2_000, pytest.param(10_000, marks=pytest.mark.sweep)])
async def test_tasks_that_take_no_time_let_others_pass_as_well(tmp_path: Path, large: int) -> None:
    """A busy machine slows both requests down, so tasks are counted and not seconds."""
    (tmp_path / "team.yaml").write_text(NO_OP_TEAM % IN_FLIGHT)
    (tmp_path / "quick_roles.py").write_text(NO_OP)
    async with running_team(tmp_path / "team.yaml", tmp_path) as team:
        first = await team.client.submit(plan=no_ops(large))
        await team.until_log(first, lambda state: state.plan_entry is not None)
        spans: list[tuple[int, int]] = []
        for _ in range(ROUNDS):
            second = await team.client.submit(plan=no_ops(SMALL))
            answer = await team.answer(second)
            assert answer.status is AnswerStatus.DONE
            log = await team.log(second)
            spans.append((place(log, Reserved), place(reversed(log), Result)))
        state = await team.state(first)
        results = [entry.sequence for entry in await team.entries(first, Result)]
        await team.client.cancel(first)

    waited_for = [sum(begun < sequence < last for sequence in results) for begun, last in spans]
    assert state.answer is None, "the large one ran beside all of them"
    assert median(waited_for) < 2 * IN_FLIGHT, "of the large one, while the small one was worked on"


def place(log: Iterable[Entry], kind: type[LogBody]) -> int:
    """Where the first entry of a kind is stored."""
    return next(entry.sequence for entry in log if isinstance(entry.body, kind))
