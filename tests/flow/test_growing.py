"""Plans that grow while they run: tasks that go over a list that another one found."""

import asyncio
import json
from typing import Any

import pytest

from muster_protocol.messages import AnswerStatus, Extended
from tests.harness import Muster

STEPS = ("before:extended", "after:extended", "before:ack")


def found(items: object) -> dict[str, Any]:
    """A task that finds these, one that goes over them, and one that sees all."""
    return {
        "goal": "a test",
        "tasks": [
            {"id": "find", "tag": "scripted", "description": json.dumps({"output": items})},
            {"id": "each", "tag": "scripted", "over": "find", "description": '{"output": {item}}'},
            {"id": "end", "tag": "scripted", "description": '{"output": "all seen"}', "dependencies": ["each"]},
        ],
    }


async def growths(muster: Muster, request: str) -> list[str]:
    entries = await muster.entries(request, Extended)
    return [entry.body.cause for entry in entries if isinstance(entry.body, Extended)]


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.sweep)])
async def test_a_plan_grows_by_what_its_first_task_finds(muster: Muster, count: int) -> None:
    await asyncio.gather(muster.start("supervisor", "s1"), muster.start("worker", "w1", "--slots", "16"))

    request = await muster.client.submit(plan=found(list(range(count))))
    answer = await muster.answer(request)

    assert (answer.status, answer.output) == (AnswerStatus.DONE, "all seen")
    assert muster.executions(request) == {"find": 1, "end": 1, **{f"each-{n}": 1 for n in range(1, count + 1)}}
    assert await growths(muster, request) == ["over:each"]
    rows = {row.id: row for row in answer.tasks}
    assert (rows["each"].attempts, rows["each-7"].label) == (0, "6")


async def test_nothing_found_is_no_failure_and_no_list_is_one(muster: Muster) -> None:
    await asyncio.gather(muster.start("supervisor", "s1"), muster.start("worker", "w1"))

    nothing = await muster.client.submit(plan=found([]))
    no_list = await muster.client.submit(plan=found("a page"))
    too_much = await muster.client.submit(plan=found([1, 2, 3]), budget={"tasks": 5})
    answers = [await muster.answer(request) for request in (nothing, no_list, too_much)]

    assert [answer.status.value for answer in answers] == ["done", "partial", "partial"]
    assert answers[1].gaps[0] == "each failed: find gave 'a page', which is no list"
    assert answers[2].gaps[0].startswith("each failed: 3 tasks more would make 6; the request may have 5")
    assert muster.executions(too_much) == {"find": 1}


@pytest.mark.parametrize("step", [STEPS[0], *(pytest.param(step, marks=pytest.mark.sweep) for step in STEPS[1:])])
async def test_a_supervisor_killed_while_the_plan_grows_leaves_one_growth_and_runs_nothing_twice(
    muster: Muster, step: str
) -> None:
    dies = "w1" if step == "before:ack" else "s1"
    muster.spawn("supervisor", "s1", die_at=step if dies == "s1" else None)
    muster.spawn("worker", "w1", die_at=step if dies == "w1" else None)
    request = await muster.client.submit(plan=found([1, 2, 3]))
    await muster.ended(dies)

    await muster.start("supervisor" if dies == "s1" else "worker", "next")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert await growths(muster, request) == ["over:each"]
    assert muster.executions(request) == {"find": 1, "each-1": 1, "each-2": 1, "each-3": 1, "end": 1}
