"""I6: two tasks of one plan that are the same work are listed and warned of; both are done, nobody is stopped."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.conflict import ConflictKind
from muster_protocol.messages import PlanRecorded
from tests.flow.conflict_tools import Contest, contest
from tests.guards import guards

SAME = [{"id": name, "orders": {"output": "prices"}} for name in ("a", "b")]


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


async def exempt(team: Contest) -> list[str]:
    """Requests whose tasks are meant to be the same: items of a map, copies of a broadcast, inputs of a select."""
    items = {"items": ["x", "x"], "template": {"description": '{"output": "{item}"}', "tag": "scripted"}}
    broadcast: list[dict[str, Any]] = [{"id": name, "tag": None, "broadcast": True} for name in ("a", "b")]
    select = {"goal": "a test", "aggregation": "select", "tasks": [{**task, "tag": "scripted"} for task in _written()]}
    return [
        await team.client.submit(map=items),
        await team.submit(broadcast),
        await team.client.submit(plan=select),
    ]


def _written() -> list[dict[str, str]]:
    return [{"id": name, "description": '{"output": "prices"}'} for name in ("a", "b")]


@guards(
    "services/coordinator/muster_coordinator/observe.py",
    "self._list_same_work(request_id, raw)",
    rule="I6",
    replace="pass",
    seconds=60,
)
async def test_twins_of_a_plan_are_listed_and_both_done_while_what_is_meant_to_be_the_same_is_not(team: Contest):
    await team.start_all()
    await team.start("worker", "w1", "--slots", "4")
    same = [await team.answer(request_id) for request_id in await exempt(team)]
    request_id = await team.submit([dict(task) for task in SAME])
    answer = await team.answer(request_id)

    found = await team.conflict(request_id)

    assert (found.kinds, found.tasks, found.attempt) == ((ConflictKind.SAME_WORK,), ("a", "b"), 0)
    assert (found.stops, found.keep) == ((), None)
    assert (answer.status, answer.conflicts, {task.id for task in answer.tasks}) == ("done", 0, {"a", "b"})
    assert team.executions(request_id) == {"a": 1, "b": 1}
    assert await team.aborts(request_id) == []
    (planned,) = await team.entries(request_id, PlanRecorded)
    assert isinstance(planned.body, PlanRecorded)
    assert planned.body.warnings == ("tasks: the same work as an earlier task: b",)
    assert [answer.status for answer in same] == ["done"] * 3
    assert [await team.found(answer.request_id) for answer in same] == [[], [], []]
