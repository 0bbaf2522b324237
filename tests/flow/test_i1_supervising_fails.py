"""I1: a bug while a request is supervised costs a lease, not the request."""

import pytest

from muster_agent.models.port import FREE, Ask, Reply
from muster_agent.models.scripted import Scripted
from muster_protocol.messages import AnswerStatus, PlanRecorded, ResultStatus
from muster_protocol.plan import Plan, TaskSpec
from muster_supervisor.steps.answer import refuse
from tests.flow.in_process import connected, owner_of, put_result, supervising
from tests.guards import guards
from tests.harness import Muster
from tests.unit.protocol.log_builder import reserved


class Buggy:
    """A model that breaks where nobody expects it: it is named when a supervisor starts, and next in an answer."""

    notice = ""
    is_llm = False
    provider = ""
    price = FREE

    def __init__(self) -> None:
        self._named = 0

    @property
    def name(self) -> str:
        self._named += 1
        if self._named == 2:
            raise RuntimeError("a bug")
        return "buggy"

    async def ask(self, ask: Ask) -> Reply:
        raise AssertionError(ask)


@guards(
    "services/supervisor/muster_supervisor/intake.py",
    '            log.exception("… request %s: supervising it failed: %r", request_id, error)\n'
    "            run.owner.lease.drop()",
    rule="I1",
    replace="            return",
)
async def test_a_request_whose_supervising_fails_is_taken_again(muster: Muster) -> None:
    async with supervising(muster, Buggy()):
        request = await muster.submit([{"id": "a"}])
        await muster.until_log(request, lambda state: state.in_flight == 1)
        await put_result(muster.bus, request, "a", ResultStatus.DONE)
        answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert (await muster.state(request)).delivery >= 2


async def test_a_bug_in_the_background_ends_the_run_as_one_in_the_loop_does(muster: Muster) -> None:
    async def stumble() -> None:
        raise ValueError("a bug")

    async with connected(muster, "s1") as bus:
        owner = owner_of(muster, bus, 1)
        assert await owner.take_first()
        owner.in_background(stumble)
        await owner.finish_background()

        with pytest.raises(RuntimeError, match="a background task failed"):
            owner.check()


@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "seconds <= 0 or step.is_plain or",
    rule="I1",
    replace="seconds <= 0 or",
)
async def test_poison_is_answered_from_the_log_and_not_by_the_model_that_may_be_the_poison(muster: Muster) -> None:
    plan = Plan(tasks=tuple(TaskSpec(id=name, description="{}", tag="scripted") for name in ("a", "b")))
    async with connected(muster, "s1") as bus:
        model = Scripted([])
        owner = owner_of(muster, bus, 1, model=model)
        await owner.log.open()
        assert await owner.take_first()
        plan_entry = PlanRecorded(plan=plan, team="default", request_hash="hash", deadline=owner.deadline, in_flight=2)
        assert await owner.compare_and_set(plan_entry)
        await owner.append(reserved(("a", 1), ("b", 1)))
        for name in ("a", "b"):
            await put_result(muster.bus, "r1", name, ResultStatus.DONE)
        await owner.log.refresh()

        await refuse(owner, "poison", "poison")
        await owner.close()

    answer = await muster.answer("r1")
    assert (model.asked, answer.status, answer.gaps) == ([], AnswerStatus.DONE, ("poison",))
    assert answer.output == {"a": "found", "b": "found"}
