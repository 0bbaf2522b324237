"""People try tasks again and give them to others: over real processes, once, whatever happens to supervisors."""

import asyncio
import signal
from typing import Any, Literal

import pytest

from muster_client import Answered
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskPhase
from muster_protocol.messages import AnswerStatus, ReassignTask, RetryTask
from tests.flow.test_people import post
from tests.harness import Muster

FAILS_ONCE = {"fail": "the mill is broken", "final": True, "times": 1}


def chain() -> list[dict[str, Any]]:
    """`a` fails the first time, `b` needs it, `d` runs until it is told to end."""
    return [
        {"id": "a", "orders": FAILS_ONCE},
        {"id": "b", "dependencies": ["a"]},
        {"id": "d", "orders": {"until": "go"}},
    ]


async def start_both(muster: Muster) -> None:
    await asyncio.gather(muster.start("supervisor", "s1"), muster.start("worker", "w1"))


def has_failed(state: RequestState) -> bool:
    return "a" in state.tasks and state.tasks["a"].phase is TaskPhase.FAILED


async def test_a_task_that_failed_is_tried_again_while_others_run_and_what_was_skipped_is_done(muster: Muster) -> None:
    await start_both(muster)
    request = await muster.submit(chain())
    await muster.until_log(request, has_failed)
    with pytest.raises(Invalid, match="did you mean 'a'"):
        await muster.client.retry(request, "aa")
    with pytest.raises(Invalid, match="has not ended"):
        await muster.client.retry(request, "d")

    decision = await muster.client.retry(request, "b", "the mill runs again")  # it stands for what failed before it
    assert decision is not None
    assert (decision.decision, decision.task_id, decision.attempt) == ("retry", "b", 1)
    await muster.until_log(request, lambda state: state.tasks["b"].phase is TaskPhase.DONE)
    muster.release("go")

    answer = await muster.answer(request)
    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 2, "b": 1, "d": 1}
    with pytest.raises(Answered, match="ask again"):
        await muster.client.retry(request, "a")


async def test_a_running_task_is_given_to_another_role_and_its_worker_stops(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--role", "scripted")
    await muster.start("worker", "w2", "--role", "second")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: len(muster.traces()) == 1, "the first attempt runs")
    with pytest.raises(Invalid, match="no role 'secnd'; did you mean 'second'"):
        await muster.client.reassign(request, "a", "secnd")
    with pytest.raises(Invalid, match="for role 'scripted' already"):
        await muster.client.reassign(request, "a", "scripted")
    with pytest.raises(Invalid, match="the team file names none"):
        await muster.client.reassign(request, "a", worker="ann")

    await muster.client.reassign(request, "a", "second", reason="it knows more")
    await muster.until(lambda: len(muster.traces()) == 2, "the second attempt runs")
    await muster.until(lambda: [line["attempt"] for line in muster.traces("over")] == [1], "the first one stops")
    muster.release("go")

    answer = await muster.answer(request)
    (row,) = answer.tasks
    assert (row.role, row.attempts, answer.status) == ("second", 2, AnswerStatus.DONE)
    assert [line["attempt"] for line in muster.traces("end")] == [2]


async def test_an_attempt_that_nobody_has_taken_yet_is_taken_away_and_its_message_deleted(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}])
    await muster.until_log(request, lambda state: state.in_flight == 1 and not state.dispatch_unconfirmed)

    await muster.client.reassign(request, "a", "second")
    await muster.until_settled("tasks.scripted")
    await muster.start("worker", "w1")

    assert (await muster.answer(request)).tasks[0].role == "second"
    assert [line["attempt"] for line in muster.traces()] == [2]


async def test_whoever_says_it_over_http_hears_what_became_of_it(muster: Muster) -> None:
    await start_both(muster)
    await muster.start("coordinator", "c1")
    request = await muster.submit(chain())
    await muster.until_log(request, has_failed)
    where = f"/v1/requests/{request}"

    assert (await post(muster, "/v1/requests/nobody/retry", {"task": "a"}))[0] == 404
    code, problem = await post(muster, f"{where}/retry", {"task": "d"})
    assert (code, problem["field"]) == (422, "task_id")
    code, said = await post(muster, f"{where}/reassign", {"task": "a", "role": "second", "reason": "better there"})
    assert (code, said["decision"]["role"], said["decision"]["task_id"]) == (200, "second", "a")
    muster.release("go")

    answer = await muster.answer(request)
    assert {row.id: row.role for row in answer.tasks} == {"a": "second", "b": "scripted", "d": "scripted"}
    assert (await post(muster, f"{where}/retry", {"task": "a"}))[0] == 409


Fault = Literal["kill", "pause"]
STRIKE = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP}


@pytest.mark.parametrize("fault", ["kill", pytest.param("pause", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("moment", ["before", pytest.param("after", marks=pytest.mark.sweep)])
async def test_what_was_said_twice_while_owners_change_is_done_once(muster: Muster, fault: Fault, moment: str) -> None:
    await start_both(muster)
    request = await muster.submit(chain())
    await muster.until_log(request, has_failed)
    bus = muster.client.bus
    if moment == "before":
        muster.signal("s1", STRIKE[fault])
    said = [RetryTask(request_id=request, task_id="a"), ReassignTask(request_id=request, task_id="d", role="second")]
    for number, order in enumerate((*said, *said)):
        await bus.store(order, bus.origin(request, nonce=str(number)))
    if moment == "after":
        await muster.until_log(request, lambda state: bool(state.orders))
        muster.signal("s1", STRIKE[fault])
    await muster.start("supervisor", "s2")
    await muster.until_log(request, lambda state: state.controls_seen > 0 and len(state.orders) == 2)
    if fault == "pause":
        muster.signal("s1", signal.SIGCONT)

    def has_stopped() -> bool:
        return ("d", 1) in [(line["task"], line["attempt"]) for line in muster.traces("over")]

    await muster.until(has_stopped, "the attempt that was taken away stops")
    muster.release("go")

    answer = await muster.answer(request)
    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request)["a"] == 2
    assert {row.id: row.attempts for row in answer.tasks} == {"a": 2, "b": 1, "d": 2}
