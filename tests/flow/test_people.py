"""Plans that wait for people: asked once, replied to once, whatever happens to supervisors meanwhile."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from muster_client import Settled
from muster_protocol.errors import Invalid
from muster_protocol.messages import AnswerStatus, Reply, Task
from muster_protocol.messages.people import APPROVAL, APPROVE, EDIT, REJECT, question_id
from muster_protocol.plan import Plan, TaskSpec
from tests.harness import Muster

TASKS = [{"id": "a"}, {"id": "b", "dependencies": ["a"]}]


async def reply(muster: Muster, request: str, choice: str, plan: Plan | None = None, reason: str = "") -> None:
    body = Reply(request_id=request, question=question_id(request, APPROVAL), choice=choice, plan=plan, reason=reason)
    await muster.client.bus.store(body, muster.client.bus.origin(request, nonce=choice + reason))


async def post(muster: Muster, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status and the JSON that the coordinator answers with."""
    headers = {"content-type": "application/json"}
    asking = urllib.request.Request(muster.http_url("c1") + path, json.dumps(body).encode(), headers)

    def ask() -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(asking, timeout=30) as found:
                return found.status, found.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    code, content = await asyncio.to_thread(ask)
    return code, json.loads(content)


async def test_a_plan_waits_for_approval_while_its_supervisor_is_killed_and_the_first_reply_counts(
    muster: Muster,
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit(TASKS, approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))
    wrong = Plan(tasks=(TaskSpec(id="c", description="{}", tag="nobody"),))
    with pytest.raises(Invalid, match="nobody has the tag 'nobody'"):
        await muster.client.reply(request, EDIT, plan=wrong)
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
    with pytest.raises(Settled, match=asked.decision.choice):
        await muster.client.reply(request, APPROVE)


async def test_whoever_replies_hears_the_decision_over_http_too(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("coordinator", "c1")
    other = Plan(tasks=(TaskSpec(id="c", description="{}", tag="scripted"),))
    request = await muster.submit(TASKS, approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))
    where = f"/v1/requests/{request}/reply"

    assert (await post(muster, "/v1/requests/nobody/reply", {"choice": APPROVE}))[0] == 404
    code, problem = await post(muster, where, {"choice": "perhaps"})
    assert (code, problem["field"]) == (422, "choice")
    code, taken_in = await post(muster, where, {"choice": EDIT, "plan": other.model_dump(mode="json")})
    assert (code, taken_in["decision"]["choice"]) == (200, EDIT)
    code, problem = await post(muster, where, {"choice": APPROVE})
    assert (code, problem["decision"]["choice"]) == (409, EDIT)

    await muster.start("worker", "w1")
    answer = await muster.answer(request)
    assert [row.id for row in answer.tasks] == ["c"]


async def test_a_note_reaches_the_log_and_every_task_that_is_dispatched_after_it(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}], approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))

    await muster.client.note(request, "Leave out last year.")
    await muster.until_log(request, lambda state: bool(state.notes))
    await muster.client.reply(request, APPROVE)
    await muster.until_log(request, lambda state: state.in_flight == 1 and not state.dispatch_unconfirmed)

    (stored,) = await muster.bus.read("tasks.scripted", from_leader=True)
    assert Task.read(stored.data).notes == ("Leave out last year.",)
