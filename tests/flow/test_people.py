"""Plans that wait for people: asked once, replied to once, whatever happens to supervisors meanwhile."""

import asyncio

from muster_protocol.messages import AnswerStatus, Reply
from muster_protocol.messages.people import APPROVAL, APPROVE, EDIT, REJECT, question_id
from muster_protocol.plan import Plan, TaskSpec
from tests.harness import Muster

TASKS = [{"id": "a"}, {"id": "b", "dependencies": ["a"]}]


async def reply(muster: Muster, request: str, choice: str, plan: Plan | None = None, reason: str = "") -> None:
    body = Reply(request_id=request, question=question_id(request, APPROVAL), choice=choice, plan=plan, reason=reason)
    await muster.client.bus.store(body, muster.client.bus.origin(request, nonce=choice + reason))


async def test_a_plan_waits_for_approval_while_its_supervisor_is_killed_and_the_first_reply_counts(
    muster: Muster,
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit(TASKS, approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))
    wrong = Plan(tasks=(TaskSpec(id="c", description="{}", tag="nobody"),))
    await reply(muster, request, EDIT, wrong)
    await muster.until_log(request, lambda state: state.refused_replies == 1)
    state = await muster.client.state(request)
    assert state.is_held
    assert not any(task.attempts for task in state.tasks.values())

    muster.kill("s1")
    await asyncio.gather(reply(muster, request, APPROVE), reply(muster, request, REJECT, reason="late"))
    await muster.start("supervisor", "s2")

    answer = await muster.answer(request)
    state = await muster.client.state(request)
    (asked,) = state.questions.values()
    assert asked.decision is not None
    expected = {APPROVE: AnswerStatus.DONE, REJECT: AnswerStatus.CANCELLED}
    assert answer.status is expected[asked.decision.choice]
    assert len(state.questions) == 1
