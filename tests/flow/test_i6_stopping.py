"""I6: a worker that is told to stop loses no message of the attempt, and lets its role clean up once."""

import asyncio
import logging
from collections.abc import AsyncGenerator

import pytest

from muster_bus.broker.queues import task_queue
from muster_protocol import subjects
from muster_protocol.messages import ResultStatus
from tests.flow.in_process import next_deliveries
from tests.flow.worker_tools import WORKER, Bench, bench
from tests.guards import guards
from tests.harness import Muster


@pytest.fixture
async def one(patient_muster: Muster, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Bench]:
    """With leases so long that a message that is neither acked nor handed back comes too late."""
    async with bench(patient_muster, monkeypatch) as running:
        yield running


@guards("services/worker/muster_worker/attempt.py", "elif self._keeps is not None:", rule="I6", replace="elif False:")
async def test_the_message_of_the_winner_that_comes_to_the_loser_is_handed_back_and_run_later(one: Bench):
    own = await one.put_and_run()
    await one.abort(own, keeps=own + 1)
    await one.until_traced("cleaning")

    winners = await one.put("of the winner, which gave it up")
    note = await one.event("handed_back")
    one.muster.release("cleaned")
    one.muster.release("go")
    result = await one.result(2)
    await one.muster.until_settled(subjects.tasks("scripted"))

    assert (note["task_sequence"], note["delivery"]) == (winners, 1) == (own + 1, 1)
    assert await one.events("refused") == []
    assert (result.status, result.task_sequence) == (ResultStatus.DONE, winners)


async def test_the_same_message_that_comes_again_to_the_loser_is_run_later(one: Bench):
    own = await one.put_and_run()
    await one.abort(own, keeps=own)
    await one.until_traced("cleaning")

    await one.given_out_again(own)
    await one.event("handed_back")
    one.muster.release("cleaned")
    one.muster.release("go")
    result = await one.result(2)
    await one.muster.until_settled(subjects.tasks("scripted"))

    assert (result.status, result.task_sequence) == (ResultStatus.DONE, own)
    assert result.delivery > 2


@guards("services/worker/muster_worker/attempt.py", "if keeps in self._refused:", rule="I6", replace="if False:")
async def test_an_abort_in_favour_of_a_message_that_was_refused_here_is_ignored(one: Bench):
    own = await one.put_and_run()
    refused = await one.put("a copy")
    assert (await one.event("refused"))["task_sequence"] == refused

    await one.abort(own, keeps=refused)
    await one.checked()
    one.muster.release("go")

    assert (await one.result()).status is ResultStatus.DONE
    assert one.muster.traces("cleaning") == []


@guards(
    "services/worker/muster_worker/attempt.py",
    "if is_first and self._handler is not None:",
    rule="I6",
    replace="if self._handler is not None:",
)
async def test_a_repeated_abort_does_not_interrupt_the_clean_up_of_a_role(one: Bench):
    own = await one.put_and_run()
    await one.abort(own, keeps=own + 1, reason="first")
    await one.until_traced("cleaning")

    await one.abort(own, keeps=own + 1, reason="second")
    await one.checked()
    one.muster.release("cleaned")
    result = await one.result()

    assert len(one.muster.traces("cleaned")) == 1
    assert (result.status, result.error and result.error.message) == (ResultStatus.CANCELLED, "second")


@guards(
    "services/worker/muster_worker/attempt.py",
    "            raise asyncio.CancelledError\n        note_lease",
    rule="I6",
    replace="        note_lease",
)
async def test_a_role_that_finishes_although_it_was_told_to_stop_has_no_result_that_counts(one: Bench):
    own = await one.put_and_run(finishes=True)
    await one.abort(own, keeps=own + 1)
    await one.until_traced("cleaning")
    one.muster.release("cleaned")

    result = await one.result()
    await one.muster.until_settled(subjects.tasks("scripted"))

    assert (result.status, result.output, result.worker) == (ResultStatus.CANCELLED, None, WORKER)


@guards(
    "services/worker/muster_worker/attempt.py",
    "        self._is_settling = True  # an abort must not interrupt the note",
    rule="I12",
)
async def test_an_abort_while_the_note_of_a_hand_back_is_stored_does_not_strand_the_message(
    one: Bench, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "muster.worker")
    own = await one.put_and_run()
    await one.event("started")
    await one.muster.leave_room_for("EVENTS", messages=1)  # the note waits for a second
    stopping = asyncio.create_task(one.worker.stop(grace_seconds=0.0))
    await one.until_traced("cleaning")
    one.muster.release("cleaned")
    await one.until_traced("cleaned")

    await one.abort(own, keeps=own + 1)
    await stopping

    (again,) = await next_deliveries(one.muster, task_queue(["scripted"]), 1, within=5)
    assert (again.sequence, again.number) == (own, 2)
    assert await one.muster.results("r1") == []
    assert "r1/t  attempt 1  handed back" in caplog.text


@guards(
    "services/worker/muster_worker/attempt.py",
    "self._resources.events.started(self.task, self.begun, role",
    rule="I6",
    replace="self._resources.events.started(self.task, self.delivery, role",
)
@guards(
    "services/worker/muster_worker/attempt.py",
    "self._resources.results.store(self.task, self.begun, outcome, seconds)",
    rule="I6",
    replace="self._resources.results.store(self.task, self.delivery, outcome, seconds)",
)
async def test_a_side_keeps_its_name_when_its_message_is_delivered_to_it_again(one: Bench):
    own = await one.put_and_run()
    await one.checked()
    await one.given_out_again(own)
    await one.checked()
    one.muster.release("go")
    result = await one.result()
    await one.muster.until_settled(subjects.tasks("scripted"))

    assert {event["delivery"] for event in await one.events("started")} == {1}
    assert (result.status, result.delivery) == (ResultStatus.DONE, 1)
    assert len(one.muster.traces()) == 1


async def test_a_side_whose_message_was_delivered_to_it_again_is_stopped_by_its_first_name(one: Bench):
    own = await one.put_and_run()
    await one.given_out_again(own)
    await one.abort(own, keeps=own + 1)
    await one.until_traced("cleaning")
    one.muster.release("cleaned")
    result = await one.result()
    await one.muster.until_settled(subjects.tasks("scripted"))

    assert (result.status, result.delivery) == (ResultStatus.CANCELLED, 1)


@guards(
    "services/worker/muster_worker/result.py",
    'log.warning("… result  %s  what it had spent was not stored: %s", log_name(task), lost)',
    rule="I6",
    replace="pass",
)
async def test_what_a_stopped_side_had_spent_is_logged_if_it_cannot_be_stored(
    one: Bench, caplog: pytest.LogCaptureFixture
):
    own = await one.put_and_run()
    await one.muster.publish("results.another", b"{}", None)
    await one.muster.leave_room_for("RESULTS", messages=1)
    await one.abort(own, keeps=own)
    await one.until_traced("cleaning")
    one.muster.release("cleaned")
    await one.until_traced("cleaned")

    await one.worker.stop(grace_seconds=0.0)

    assert "r1/t  attempt 1  what it had spent was not stored: 0 tokens" in caplog.text
    assert await one.muster.results("r1") == []
