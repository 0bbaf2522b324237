"""I4: nothing that a request waits for, in itself or beside it, keeps its answer past the deadline."""

import time

import pytest

from muster_agent.model import choose_model
from muster_protocol.messages import AnswerStatus, ResultStatus
from tests.flow.inside import Silent, put_result, put_task, supervising, task_of
from tests.harness import Muster

WAITING = 70  # more than a supervisor takes at once
SECONDS = 1.5


@pytest.mark.parametrize("when", ["planning", "refining", "composing"])
async def test_a_model_that_never_answers_holds_no_answer_up(muster: Muster, when: str) -> None:
    async with supervising(muster, Silent()):
        began = time.monotonic()
        if when == "planning":
            request = await muster.client.submit("what is it?", deadline_seconds=SECONDS)
        else:
            request = await muster.submit([{"id": "a"}, {"id": "b"}], deadline_seconds=SECONDS)
            await muster.until_log(request, lambda state: state.in_flight == 2)
            await put_result(muster, request, "a", ResultStatus.DONE)
            await put_result(muster, request, "b", ResultStatus.FAILED if when == "refining" else ResultStatus.DONE)
        answer = await muster.answer(request, within=5)

    assert time.monotonic() - began < SECONDS + 1
    assert (
        answer.status
        is {
            "planning": AnswerStatus.FAILED,
            "refining": AnswerStatus.PARTIAL,
            "composing": AnswerStatus.DONE,
        }[when]
    )


async def test_requests_that_wait_for_workers_keep_no_other_from_being_answered(muster: Muster) -> None:
    async with supervising(muster, choose_model("offline", {})):
        for _ in range(WAITING):
            await muster.submit([{"id": "waits"}])

        request = await muster.submit([{"id": "waits"}], deadline_seconds=0.5)
        answer = await muster.answer(request, within=4)

    assert "deadline" in answer.text


async def test_a_task_that_comes_after_its_deadline_is_settled_without_work(muster: Muster) -> None:
    await muster.start("worker", "w1")

    await put_task(muster, task_of("late", deadline=time.time() - 1))
    await muster.until_settled("TASKS", "w_acting", within=5)

    assert muster.executions("r1") == {}
