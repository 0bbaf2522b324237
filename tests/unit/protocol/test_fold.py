"""The rules of the fold, one example each."""

import pytest

from muster_protocol.fold import TaskPhase, advance, next_timer
from muster_protocol.messages import Decision, Reservation, Reserved, ResultStatus, Usage
from tests.guards import guards
from tests.unit.protocol.log_builder import (
    START,
    LogBuilder,
    dispatched,
    failure,
    plan_entry,
    plan_of,
    planned,
    reserved,
    result,
    revision,
    statuses,
    task,
)


def test_a_failed_task_skips_what_waits_for_it_and_nothing_else():
    log = planned(task("t1", max_attempts=1), task("t2", "t1"), task("t3", "t2"), task("t4"), task("t5", "t4"))

    log.run(failure("t1", message="no such page"), result("t4"), result("t5"))

    state = log.state
    assert statuses(state) == {"t1": "failed", "t2": "skipped", "t3": "skipped", "t4": "done", "t5": "done"}
    assert state.tasks["t2"].reason == "t1 failed: no such page"
    assert state.tasks["t3"].reason == "t2 skipped: t1 failed: no such page"
    assert state.open_tasks == 0


def test_a_long_chain_of_skipped_tasks_names_the_cause_without_growing():
    chain = [task("t0", max_attempts=1), *(task(f"t{n}", f"t{n - 1}") for n in range(1, 2_000))]
    log = planned(*chain)

    log.run(failure("t0", message="no such page" + "!" * 10_000))

    reasons = [found.reason or "" for found in log.state.tasks.values()][1:]
    assert reasons[-1].startswith("t1998 skipped: t0 failed: no such page")
    assert max(map(len, reasons)) < 1_000


def test_a_task_fails_with_its_third_failed_attempt():
    log = planned(task("t"))

    for attempt in (1, 2, 3):
        log.own(reserved(("t", attempt)))
        log.work(failure("t", attempt))
        log.own(revision("t", attempt + 1))

    assert statuses(log.state) == {"t": "failed"}
    assert len(log.state.tasks["t"].attempts) == 3


def test_a_failed_task_waits_for_its_revision_and_gets_its_description():
    log = planned(task("t"))
    log.run(failure("t"))
    log.own(reserved(("t", 2)))
    assert statuses(log.state) == {"t": "awaiting_retry"}

    log.own(revision("t", 2, not_before=2_000.0))
    state = log.state

    assert state.tasks["t"].description == "do t better"
    advance(state, 1_999.9)
    assert statuses(state) == {"t": "delayed"}
    advance(state, 2_000.0)
    assert statuses(state) == {"t": "ready"}


def test_a_running_retry_is_not_given_up_by_the_timer_of_its_own_delay():
    log = planned(task("t"))
    log.run(failure("t"))
    log.own(revision("t", 2, not_before=log.time))
    log.own(reserved(("t", 2), timeout_seconds=60))
    read_by_the_next_owner = log.state

    advance(read_by_the_next_owner, log.time + 10)

    assert not read_by_the_next_owner.expired
    assert next_timer(read_by_the_next_owner) == log.time + 61


def test_only_the_first_revision_of_an_attempt_counts():
    log = planned(task("t"))
    log.run(failure("t"))
    log.own(revision("t", 2))

    log.own(revision("t", 2).model_copy(update={"description": "something else", "usage": Usage(input_tokens=9)}))

    assert log.state.tasks["t"].description == "do t better"
    assert log.state.usage == Usage()


def test_a_revision_of_another_attempt_than_the_next_changes_nothing():
    log = planned(task("t"))
    log.run(failure("t"))

    log.own(revision("t", 3))

    assert log.state.tasks["t"].description == "do t"
    assert statuses(log.state) == {"t": "awaiting_retry"}


def test_what_was_set_aside_for_an_attempt_is_free_again_after_its_result():
    log = planned(task("t"), task("u"))
    for name, tokens in (("t", 100), ("u", 10)):
        attempt = Reservation(task_id=name, attempt=1, timeout_seconds=60.0, tokens=tokens, usd=tokens / 100)
        log.own(Reserved(attempts=(attempt,)))
    assert (log.state.tokens_set_aside, log.state.usd_set_aside) == (110, pytest.approx(1.1))

    log.work(result("t", tokens=7))

    assert (log.state.tokens_set_aside, log.state.usd_set_aside) == (10, pytest.approx(0.1))


def test_a_request_began_with_its_first_entry():
    log = planned(task("t"))

    assert log.state.started_at == log.entries[0].time > START


def test_a_failure_without_words_is_named_as_a_cause_all_the_same():
    log = planned(task("t", max_attempts=1), task("u", "t"))

    log.run(failure("t", message=""))

    assert log.state.tasks["u"].reason == "t failed: "


def test_an_attempt_that_is_not_the_next_one_is_not_begun():
    log = planned(task("t"))

    log.own(reserved(("t", 2)))

    assert statuses(log.state) == {"t": "ready"}


def test_a_note_of_a_former_attempts_message_confirms_nothing_of_the_next():
    log = planned(task("t"))
    log.run(failure("t"))
    log.own(revision("t", 2))
    log.own(reserved(("t", 2)))

    log.own(dispatched(("t", 1)))

    assert list(log.state.dispatch_unconfirmed) == ["t"]
    assert log.state.tasks["t"].attempts[-1].task_sequence is None


def test_a_result_of_what_was_never_begun_does_not_count():
    log = planned(task("t"))
    log.run(result("t"))

    assert not any(log.state.is_counted(result(name, attempt)) for name, attempt in (("u", 1), ("t", 0), ("t", 2)))


def test_a_task_that_nobody_began_and_that_names_no_tag_has_no_role():
    log = planned(task("t").model_copy(update={"tag": None}))

    assert [row.role for row in log.state.outcomes()] == [""]


def test_a_task_that_words_cannot_mend_has_failed_until_a_late_success():
    log = planned(task("t"), task("after", "t"))
    log.run(failure("t"))
    given_up = revision("t", 2).model_copy(update={"gives_up": True, "reason": "words cannot mend this: no such table"})

    log.own(given_up)

    assert (log.state.tasks["t"].phase, log.state.tasks["after"].phase) == (TaskPhase.FAILED, TaskPhase.SKIPPED)
    assert log.state.tasks["after"].reason == "t failed: words cannot mend this: no such table"
    assert (log.state.open_tasks, log.state.awaiting_retry) == (0, {})
    log.work(result("t", 1, worker="w2"))
    assert (log.state.tasks["t"].phase, log.state.tasks["after"].phase) == (TaskPhase.DONE, TaskPhase.READY)


def test_a_final_failure_is_not_tried_again():
    log = planned(task("t"))

    log.run(failure("t", is_final=True))

    assert statuses(log.state) == {"t": "failed"}


def test_an_attempt_that_its_owner_cancels_is_not_tried_again():
    log = planned(task("t"))
    log.own(reserved(("t", 1)))

    log.own(failure("t").model_copy(update={"status": ResultStatus.CANCELLED, "worker": ""}))

    assert statuses(log.state) == {"t": "failed"}


@guards(
    "libs/protocol/muster_protocol/fold/counting.py",
    "return before is None and (by_owner or status is not ResultStatus.CANCELLED)",
    rule="I6",
    replace="return before is None",
)
def test_a_worker_that_was_stopped_adds_its_cost_and_settles_nothing():
    log = planned(task("t"))
    log.own(reserved(("t", 1)))

    log.work(result("t", worker="w2", tokens=7).model_copy(update={"status": ResultStatus.CANCELLED}))
    log.work(result("t", tokens=10))

    assert statuses(log.state) == {"t": "done"}
    assert log.state.usage.tokens == 17
    assert [(found.worker, found.status) for found in log.state.tasks["t"].superseded] == [("w2", "cancelled")]


def test_a_second_result_is_counted_as_a_cost_and_nothing_else():
    log = planned(task("t"))
    log.run(result("t", tokens=10))

    log.work(result("t", worker="w2", tokens=7).model_copy(update={"output": "something else"}))

    state = log.state
    found = state.tasks["t"].result
    assert found is not None
    assert found.output == "found"
    assert (state.uncounted, state.usage.tokens, state.in_flight) == (1, 17, 0)


def test_a_result_of_an_attempt_that_was_never_reserved_runs_nothing():
    log = planned(task("t"), task("u", "t"))

    log.work(result("t", 1))

    assert statuses(log.state) == {"t": "ready", "u": "waiting"}


def test_a_plan_with_a_cycle_is_ignored_and_the_next_one_counts():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("a", "b"), task("b", "a"))))

    log.own(plan_entry(plan_of(task("c"))))

    assert list(log.state.tasks) == ["c"]


def test_i2_of_two_plans_the_first_counts():
    log = planned(task("first"))

    log.own(plan_entry(plan_of(task("second"))))

    assert list(log.state.tasks) == ["first"]


def test_an_attempt_whose_dispatch_is_confirmed_need_not_be_published_again():
    log = planned(task("t"), task("u"))
    log.own(reserved(("t", 1), ("u", 1)))

    log.own(dispatched(("t", 1)))

    assert list(log.state.dispatch_unconfirmed) == ["u"]
    assert log.state.tasks["t"].attempts[0].task_sequence == 7


def test_the_same_task_twice_in_one_reservation_is_one_attempt():
    log = planned(task("t"))

    log.own(reserved(("t", 1), ("t", 1), ("t", 2)))

    assert log.state.in_flight == 1


def test_the_first_cancellation_is_the_one_that_is_named():
    log = planned(task("t"))

    for sequence, by in ((4, "client/a"), (9, "client/b")):
        log.own(Decision(decision="cancel", control_sequence=sequence, by=by))

    state = log.state
    assert state.cancelled is not None
    assert (state.cancelled.by, state.controls_seen) == ("client/a", 9)


def test_the_answer_has_a_table_of_seconds_attempts_and_reasons():
    log = planned(task("t", max_attempts=2), task("u", "t"))
    log.run(failure("t"))
    log.own(revision("t", 2))
    log.run(failure("t", 2, message="again"))

    rows = [(row.id, row.status, row.attempts, row.seconds, row.reason) for row in log.state.outcomes()]

    assert rows == [("t", "failed", 2, 2.0, "again"), ("u", "skipped", 0, 0.0, "t failed: again")]
