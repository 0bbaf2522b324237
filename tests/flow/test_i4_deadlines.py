"""I4: an answer comes by the deadline, or within lease + 2 s of it when the owner died; finished work is kept."""

import time

from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster


async def test_a_partial_answer_with_all_finished_work_comes_by_the_deadline(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    began = time.monotonic()

    request = await muster.submit(
        [{"id": "quick", "orders": {"output": "kept"}}, {"id": "slow", "orders": {"sleep": 60}}], deadline_seconds=6.0
    )
    answer = await muster.answer(request)

    assert time.monotonic() - began < 6.0 + LEASE_SECONDS + 2.0  # by then it is the machine that is late, not we
    assert answer.status is AnswerStatus.PARTIAL
    assert answer.output == {"quick": "kept"}
    assert any("slow was still running" in gap for gap in answer.gaps)


async def test_a_request_whose_owner_dies_before_the_deadline_is_answered_soon_after_it(muster: Muster) -> None:
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s1")
    await muster.start("supervisor", "s2")
    began = time.monotonic()
    request = await muster.submit(
        [{"id": "quick", "orders": {"output": "kept"}}, {"id": "slow", "orders": {"sleep": 60}}], deadline_seconds=3.0
    )
    await muster.until(lambda: len(muster.traces("end")) == 1, "the quick task is done")
    await muster.until_log(request, lambda state: state.owner is not None)
    owner = (await muster.state(request)).owner
    assert owner is not None

    muster.kill(owner)
    answer = await muster.answer(request)

    assert time.monotonic() - began < 3.0 + LEASE_SECONDS + 2.0
    assert answer.status is AnswerStatus.PARTIAL
    assert answer.output == {"quick": "kept"}


async def test_a_request_that_waited_past_its_deadline_is_answered_at_once(muster: Muster) -> None:
    request = await muster.submit([{"id": "a"}], deadline_seconds=0.2)
    await muster.start("supervisor", "s1")

    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert "deadline" in answer.text
    assert muster.executions(request) == {}


@guards("services/supervisor/muster_supervisor/steps/expire.py", "await owner.append(result)", rule="I4")
async def test_an_attempt_without_a_result_by_its_timeout_is_failed_by_the_owner(muster: Muster) -> None:
    await muster.start("supervisor", "s1")

    request = await muster.submit([{"id": "lonely", "timeout_seconds": 0.3, "max_attempts": 1}], deadline_seconds=20)
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert answer.tasks[0].reason == "lonely gave no result within 0.3 s"


async def test_a_task_that_expired_in_the_queue_is_settled_without_work(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "late"}], deadline_seconds=0.5)
    await muster.answer(request)

    await muster.start("worker", "w1")
    await muster.until_settled(subjects.tasks("scripted"))

    assert muster.executions(request) == {}


async def test_a_slow_role_is_stopped_at_its_own_timeout(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--slots", "1")
    await muster.answer(await muster.submit([{"id": "first"}]))  # what starts after it starts at once …

    request = await muster.submit([{"id": "slow", "orders": {"sleep": 60}, "timeout_seconds": 2, "max_attempts": 1}])
    answer = await muster.answer(request)

    assert "no result within 2 s" in (answer.tasks[0].reason or "")  # in its worker's words, or its owner's
    next_request = await muster.submit([{"id": "free"}])
    assert (await muster.answer(next_request)).status is AnswerStatus.DONE
    assert len(muster.traces("over")) == len(muster.traces("start"))  # … unless the machine is busy for two seconds


async def test_a_request_whose_tasks_find_no_room_is_answered_by_its_deadline(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.leave_room_for("TASKS", messages=1)
    began = time.monotonic()

    request = await muster.submit([{"id": "a"}, {"id": "b"}, {"id": "c"}], deadline_seconds=2.0)
    answer = await muster.answer(request)

    assert time.monotonic() - began < 2.0 + LEASE_SECONDS + 2.0
    assert answer.status is AnswerStatus.FAILED
    assert "deadline" in answer.text


async def test_a_deadline_that_the_log_would_not_live_to_see_is_refused(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    body = b'{"text": "compare three clouds", "deadline_seconds": 1000000000}'

    answer = await muster.answer(muster.id_of(await muster.publish("requests.default", body, None), body))

    assert answer.status is AnswerStatus.FAILED
    assert "deadline_seconds" in answer.text
