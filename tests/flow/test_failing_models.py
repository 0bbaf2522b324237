"""Models that raise anything or never answer cost no finished work and no request."""

from muster_agent.models.port import Ask, ComposeBrief, PlanBrief, Reply
from muster_agent.models.scripted import Scripted
from muster_protocol.messages import AnswerStatus, Taken
from tests.flow.in_process import Silent, supervising
from tests.harness import Muster


async def test_a_composer_that_raises_anything_costs_no_finished_work(muster: Muster) -> None:
    def script(ask: Ask) -> Reply | Exception:
        return KeyError("content") if isinstance(ask.brief, ComposeBrief) else Reply("{}")

    await muster.start("worker", "w1")
    async with supervising(muster, Scripted(script)):
        request = await muster.submit([{"id": "a", "orders": {"fail": "at first", "times": 1}}, {"id": "b"}])
        answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE


async def test_a_planner_that_raises_anything_is_named_in_the_answer(muster: Muster) -> None:
    def script(ask: Ask) -> Reply | Exception:
        assert isinstance(ask.brief, PlanBrief)
        return KeyError("content")

    async with supervising(muster, Scripted(script)):
        answer = await muster.answer(await muster.client.submit("plan this"))

    assert answer.status is AnswerStatus.FAILED
    assert "KeyError" in answer.text


async def test_supervisors_stopped_while_they_plan_do_not_make_a_request_poison(patient_muster: Muster) -> None:
    muster = patient_muster
    request = await muster.client.submit("plan this")
    for take in range(1, 6):
        async with supervising(muster, Silent()):
            await muster.until_log(request, lambda state, take=take: state.delivery == take)

    state = await muster.state(request)
    assert state.answer is None
    assert state.unproductive_takes(6) == 0
    assert sum(entry.body.handed_back for entry in await muster.log(request) if isinstance(entry.body, Taken)) == 5
