"""A supervisor dies, hangs or stops while a plan waits for people: one question, one decision, each task once."""

import signal
from typing import Literal

import pytest

from muster_protocol.messages import AnswerStatus
from muster_protocol.messages.people import APPROVE
from tests.harness import Muster

pytestmark = pytest.mark.sweep
Fault = Literal["kill", "pause", "stop"]


async def strike(muster: Muster, fault: Fault, instance: str) -> None:
    if fault == "kill":
        muster.kill(instance)
    elif fault == "stop":
        await muster.stop(instance)
    else:
        muster.signal(instance, signal.SIGSTOP)
        await muster.past_lease()


@pytest.mark.parametrize("fault", ["kill", "pause", "stop"])
@pytest.mark.parametrize("moment", ["question", "reply", "decision"])
async def test_a_plan_is_decided_once_and_each_task_is_done_once(muster: Muster, fault: Fault, moment: str) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}, {"id": "b", "dependencies": ["a"]}], approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))
    if moment == "question":
        await strike(muster, fault, "s1")
        await muster.start("supervisor", "s2")
    replying = muster.client.reply(request, APPROVE)
    if moment == "reply":
        await strike(muster, fault, "s1")
        await replying
        await muster.start("supervisor", "s2")
    else:
        await replying
    if moment == "decision":
        await strike(muster, fault, "s1")
        await muster.start("supervisor", "s2")
    await muster.start("worker", "w1")
    if fault == "pause":
        muster.signal("s1", signal.SIGCONT)

    answer = await muster.answer(request)
    state = await muster.client.state(request)
    (asked,) = state.questions.values()
    assert answer.status is AnswerStatus.DONE
    assert asked.decision is not None
    assert asked.decision.choice == APPROVE
    assert muster.executions(request) == {"a": 1, "b": 1}
