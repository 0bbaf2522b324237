"""I4: nothing that a request waits for, in itself or beside it, keeps its answer past the deadline."""

import time

import pytest

from muster_agent.errors import ModelAway
from muster_agent.models.choose import choose_model
from muster_agent.models.scripted import Scripted
from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus, ResultStatus
from muster_supervisor.decide import GiveAnswer, MakePlan, due
from muster_testing import until_asked
from tests.flow.in_process import Silent, connected, owner_of, put_result, put_task, supervising, task_of
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster

WAITING = 70  # more than a supervisor takes at once
SECONDS = 4.0  # a tenth of it is kept for the answer, and the results must be there by then


@guards(
    "services/supervisor/muster_supervisor/steps/plan.py",
    "async with asyncio.timeout(owner.seconds_left()):",
    rule="I4",
    replace="async with asyncio.timeout(None):",
    case="planning",
)
@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "async with asyncio.timeout(seconds):",
    rule="I4",
    replace="async with asyncio.timeout(None):",
    case="composing",
)
@pytest.mark.parametrize("when", ["planning", "refining", "composing"])
async def test_a_model_that_never_answers_does_not_delay_the_answer(muster: Muster, when: str) -> None:
    async with supervising(muster, Silent()):
        began = time.monotonic()
        if when == "planning":
            request = await muster.client.submit("what is it?", deadline_seconds=SECONDS)
        else:
            request = await muster.submit([{"id": "a"}, {"id": "b"}], deadline_seconds=SECONDS)
            await muster.until_log(request, lambda state: state.in_flight == 2)
            await put_result(muster.bus, request, "a", ResultStatus.DONE)
            await put_result(muster.bus, request, "b", ResultStatus.FAILED if when == "refining" else ResultStatus.DONE)
        answer = await muster.answer(request)

    assert time.monotonic() - began < SECONDS + LEASE_SECONDS + 2
    assert (
        answer.status
        is {
            "planning": AnswerStatus.FAILED,
            "refining": AnswerStatus.PARTIAL,
            "composing": AnswerStatus.DONE,
        }[when]
    )


@guards(
    "services/supervisor/muster_supervisor/owner.py",
    "(last_moment(self.state) or self.deadline)",
    rule="I4",
    replace="(self._deadline - 5.0)",
)
async def test_a_request_that_waited_long_is_planned_within_the_time_that_is_left(
    muster: Muster,
) -> None:
    async with connected(muster, "s1") as bus:
        owner = owner_of(muster, bus, 1, waited_seconds=50.0)
        await owner.log.open()
        assert await owner.take_first()
        last = owner.now() + owner.seconds_left()

        assert due(owner.state, last - 0.2) == [MakePlan()]
        assert due(owner.state, last + 0.2) == [
            GiveAnswer(AnswerStatus.FAILED, "the deadline was reached", cause="deadline")
        ]
        await owner.close()


@guards(
    "services/supervisor/muster_supervisor/steps/plan.py",
    "owner.model_slot() if request.text is not None else nullcontext()",
    rule="I4",
    replace="owner.model_slot()",
)
async def test_requests_that_wait_for_a_model_do_not_delay_those_that_need_none(muster: Muster) -> None:
    await muster.start("worker", "w1")
    async with supervising(muster, Silent()):
        model_slots = [await muster.client.submit(f"think of {n}") for n in range(16)]
        for request in model_slots:
            await muster.until_log(request, lambda state: state.owner is not None)

        request = await muster.submit([{"id": "a"}], deadline_seconds=30)
        answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE


async def test_a_control_message_is_read_once_however_many_follow(muster: Muster) -> None:
    async with supervising(muster, choose_model("offline", {})) as supervisor:
        request = await muster.submit([{"id": "waits"}])
        await muster.until_log(request, lambda state: state.in_flight == 1)
        before = supervisor.bus.nc.stats["in_msgs"]

        async def are_reported(count: int) -> bool:
            return len(await muster.errors()) == count

        for count in range(5, 205, 5):
            for _ in range(5):
                await muster.publish(f"control.{request}", b"{}", {"sender": "client/c", "kind": "nonsense"})
            await until_asked(lambda count=count: are_reported(count), "all are reported")

        assert supervisor.bus.nc.stats["in_msgs"] - before < 3000  # from the beginning each time it would be 5,000


@guards("services/supervisor/muster_supervisor/run.py", "self.slot_released.set()  # what follows waits", rule="I4")
async def test_requests_that_wait_for_workers_keep_no_other_from_being_answered(muster: Muster) -> None:
    async with supervising(muster, choose_model("offline", {})):
        for _ in range(WAITING):
            await muster.submit([{"id": "waits"}])

        request = await muster.submit([{"id": "waits"}], deadline_seconds=0.5)
        answer = await muster.answer(request)

    assert "deadline" in answer.text


@guards(
    "services/worker/muster_worker/history.py",
    "if now >= task.deadline and now >= await self._end_of(task):",
    rule="I4",
)
async def test_a_task_that_comes_after_its_deadline_is_settled_without_work(muster: Muster) -> None:
    await muster.start("worker", "w1")

    await put_task(muster, task_of("late", deadline=time.time() - 1))
    await muster.until_settled(subjects.tasks("scripted"))

    assert muster.executions("r1") == {}


async def test_a_model_that_is_away_until_the_deadline_is_named_in_the_answer(muster: Muster) -> None:
    async with supervising(muster, Scripted(lambda _: ModelAway("no answer from the provider", 30.0))):
        request = await muster.client.submit("what is it?", deadline_seconds=3)
        answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert answer.text.startswith("the deadline was reached; planning is tried again: no answer from the provider")
