"""I1: a request that is given up as poison keeps what is done, and one for which others are at work is not given up."""

import pytest

from muster_protocol.messages import AnswerStatus
from tests.flow.dying import TAKES, die_in_turn
from tests.flow.in_process import put_task, task_of
from tests.guards import guards
from tests.harness import Muster


@pytest.mark.sweep
@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "draft = merge(known.state, str(reason))",
    rule="I4",
    replace='draft = Draft("", {})',
    seconds=60,
)
async def test_a_request_that_nobody_can_read_any_more_is_answered_with_what_is_done(muster: Muster) -> None:
    await muster.start("worker", "w1", "--role", "scripted")
    await muster.start("supervisor", "s1")
    tasks = [{"id": "quick"}, {"id": "lonely", "tag": "second", "timeout_seconds": 1.5, "max_attempts": 1}]
    request = await muster.submit(tasks)
    await muster.until_log(request, lambda state: bool(state.tasks) and state.tasks["quick"].phase == "done")
    muster.kill("s1")
    await die_in_turn(muster, "before:read", TAKES + 1)  # it was taken once: one may read it to answer it

    await muster.start("supervisor", "wary", die_at="before:read")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    assert answer.output == {"quick": f"quick of {request}"}
    assert {task.id: task.status for task in answer.tasks} == {"quick": "done", "lonely": "cancelled"}
    assert "poison" in answer.reason
    await muster.until_settled("tasks.second")


@pytest.mark.sweep
async def test_a_request_whose_task_waits_behind_another_is_not_poison(muster: Muster) -> None:
    await muster.start("worker", "w1", "--slots", "1")
    await put_task(muster, task_of("before", description='{"until": "go"}'))
    await muster.until(lambda: bool(muster.traces()), "the only slot is taken")
    request = await muster.submit([{"id": "a"}])
    await muster.start("supervisor", "s1", die_at="after:dispatched")
    assert await muster.ended("s1") == 137
    await die_in_turn(muster, "after:taken")

    await muster.start("supervisor", "s2")
    await muster.until_log(request, lambda state: state.owner == "s2")
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
