"""Tasks that add tasks while they run: what waits for them, what is refused, and what is left after a fault."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import Answer, AnswerStatus, Extended
from tests.harness import Muster, running

ROLES = '  - {name: finder, spawns: true, run: "muster_testing.roles:scripted"}\n'
STEPS = ("before:extended", "after:extended")
ALL_ONCE = {"root": 1, "x": 1, "y": 1, "end": 1}


@pytest.fixture
async def finders(tmp_path: Path) -> AsyncIterator[Muster]:
    async with running(tmp_path, roles=ROLES) as muster:
        yield muster


def adds(*added: dict[str, Any], **orders: Any) -> list[dict[str, Any]]:
    """A task that adds these, and one that waits for it."""
    return [
        {"id": "root", "tag": "finder", "orders": {"spawn": list(added), **orders}},
        {"id": "end", "orders": {"output": "all seen"}, "dependencies": ["root"]},
    ]


def found(task_id: str, **more: Any) -> dict[str, Any]:
    return {"id": task_id, "tag": "scripted", **more}


async def growths(muster: Muster, request: str) -> list[Extended]:
    entries = await muster.entries(request, Extended)
    return [entry.body for entry in entries if isinstance(entry.body, Extended)]


async def test_who_waits_for_a_task_waits_for_what_it_adds(finders: Muster) -> None:
    await asyncio.gather(finders.start("supervisor", "s1"), finders.start("worker", "w1"))
    deeper = {"tag": "finder", "id": "x", "orders": {"spawn": [found("x1"), found("root"), {"tag": "second"}]}}

    request = await finders.submit(adds(deeper, found("y", dependencies=["x"])))
    answer = await finders.answer(request)

    assert (answer.status, answer.output) == (AnswerStatus.DONE, "all seen")
    assert finders.executions(request) == {"root": 1, "x": 1, "x1": 1, "x-s3": 1, "y": 1, "end": 1}
    assert [(growth.cause, [spec.id for spec in growth.add]) for growth in await growths(finders, request)] == [
        ("spawned:root", ["x", "y"]),
        ("spawned:x", ["x1", "x-s3"]),
    ]
    state = await finders.state(request)
    assert state.tasks["end"].spec.dependencies == ("root", "x", "x1", "x-s3", "y")
    assert {row.id: row.grown_by for row in answer.tasks if row.grown_by} == {
        "x": "spawned:root",
        "y": "spawned:root",
        "x1": "spawned:x",
        "x-s3": "spawned:x",
    }


@pytest.mark.parametrize(
    ("added", "more", "gap"),
    [
        (found("x", tag="nobody"), {}, "root is done, but what it spawned was not added: tasks.x.tag: nobody has the"),
        (found("x"), {"budget": {"tasks": 2}}, "root is done, but what it spawned was not added: 1 task more would"),
        (found("x", dependencies=["end"]), {}, "root is done, but what it spawned was not added: tasks would wait"),
    ],
)
async def test_what_cannot_be_added_is_a_gap_and_undoes_nothing(
    finders: Muster, added: dict[str, Any], more: dict[str, Any], gap: str
) -> None:
    await asyncio.gather(finders.start("supervisor", "s1"), finders.start("worker", "w1"))

    request = await finders.submit(adds(added), **more)
    answer = await finders.answer(request)

    assert (answer.status, answer.output) == (AnswerStatus.PARTIAL, "all seen")
    assert [each[: len(gap)] for each in answer.gaps] == [gap]
    assert finders.executions(request) == {"root": 1, "end": 1}


async def test_a_role_that_may_not_add_tasks_fails_with_the_key_that_is_missing(finders: Muster) -> None:
    await asyncio.gather(finders.start("supervisor", "s1"), finders.start("worker", "w1"))

    request = await finders.submit([{"id": "root", "orders": {"spawn": [found("x")]}}])
    answer = await finders.answer(request)

    assert (answer.status, answer.error_class) == (AnswerStatus.FAILED, "logic")
    assert "the role 'scripted' may not add tasks; write spawns: true under it in the team file" in answer.gaps[0]
    assert finders.executions(request) == {"root": 1}


async def test_only_the_attempt_that_succeeds_adds(finders: Muster) -> None:
    await asyncio.gather(finders.start("supervisor", "s1"), finders.start("worker", "w1"))

    request = await finders.submit(adds(found("x"), fail="not yet", times=1))
    answer = await finders.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert finders.executions(request) == {"root": 2, "x": 1, "end": 1}
    assert [growth.cause for growth in await growths(finders, request)] == ["spawned:root"]


@pytest.mark.parametrize(
    ("fault", "step", "has_peer"),
    [
        ("kill", "before:extended", True),
        ("kill", "after:extended", False),
        *(
            pytest.param(fault, step, peer, marks=pytest.mark.sweep)
            for fault in ("kill", "stop", "term")
            for step in STEPS
            for peer in (True, False)
            if (fault, step, peer) not in (("kill", "before:extended", True), ("kill", "after:extended", False))
        ),
    ],
)
async def test_i2_a_fault_of_the_supervisor_while_the_plan_grows_leaves_one_growth(
    finders: Muster, fault: str, step: str, has_peer: bool
) -> None:
    await finders.start("worker", "w1")
    await finders.start("supervisor", "s1", die_at=step if fault == "kill" else f"{fault}@{step}")
    request = await finders.submit(adds(found("x"), found("y")))
    if fault == "stop":
        await finders.until_paused("s1")
    else:
        await finders.ended("s1")

    if has_peer:
        await finders.start("supervisor", "s2")
        await finders.until_log(request, lambda state: state.owner == "s2" or state.answer is not None)
    if fault == "stop":
        await finders.past_lease()
        finders.signal("s1", signal.SIGCONT)  # two owners: what the former one writes is not read
    elif not has_peer:
        await finders.start("supervisor", "s1")
    answer = await finders.answer(request)

    assert answer.status is AnswerStatus.DONE
    state = await finders.state(request)
    assert [name for name, task in state.tasks.items() if task.grown_by == "spawned:root"] == ["x", "y"]
    assert len(await finders.entries(request, Answer)) == 1
    assert finders.executions(request) == ALL_ONCE


async def test_i3_a_worker_killed_after_it_stored_what_it_adds_adds_it_once(finders: Muster) -> None:
    await finders.start("supervisor", "s1")
    await finders.start("worker", "w1", die_at="before:ack")
    request = await finders.submit(adds(found("x"), found("y")))
    assert await finders.ended("w1") == 137

    await finders.start("worker", "w2")
    answer = await finders.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert finders.executions(request) == ALL_ONCE
    assert [growth.cause for growth in await growths(finders, request)] == ["spawned:root"]
