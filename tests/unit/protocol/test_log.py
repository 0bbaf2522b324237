"""The fold's rules, one story each."""

import gc
import time

from muster_protocol.fold import Entry, RequestState, advance, fold, next_timer
from muster_protocol.messages import Decision, ResultStatus, Usage
from tests.unit.protocol.log_builder import (
    REQUEST,
    Journal,
    answer,
    dispatched,
    failure,
    plan_entry,
    plan_of,
    planned,
    reserved,
    result,
    revision,
    taken,
    task,
)


def statuses(state: RequestState) -> dict[str, str]:
    return {task_id: found.phase.value for task_id, found in state.tasks.items()}


def test_a_failed_task_skips_what_waits_for_it_and_nothing_else():
    journal = planned(task("t1", max_attempts=1), task("t2", "t1"), task("t3", "t2"), task("t4"), task("t5", "t4"))

    journal.run(failure("t1", message="no such page"), result("t4"), result("t5"))

    state = journal.state
    assert statuses(state) == {"t1": "failed", "t2": "skipped", "t3": "skipped", "t4": "done", "t5": "done"}
    assert state.tasks["t2"].reason == "t1 failed: no such page"
    assert state.tasks["t3"].reason == "t2 skipped: t1 failed: no such page"
    assert state.open_tasks == 0


def test_a_long_chain_of_skipped_tasks_names_the_cause_without_growing():
    chain = [task("t0", max_attempts=1), *(task(f"t{n}", f"t{n - 1}") for n in range(1, 2_000))]
    journal = planned(*chain)

    journal.run(failure("t0", message="no such page" + "!" * 10_000))

    reasons = [found.reason or "" for found in journal.state.tasks.values()][1:]
    assert reasons[-1].startswith("t1998 skipped: t0 failed: no such page")
    assert max(map(len, reasons)) < 1_000


def test_three_strikes_end_a_task():
    journal = planned(task("t"))

    for attempt in (1, 2, 3):
        journal.own(reserved(("t", attempt)))
        journal.work(failure("t", attempt))
        journal.own(revision("t", attempt + 1))

    assert statuses(journal.state) == {"t": "failed"}
    assert len(journal.state.tasks["t"].attempts) == 3


def test_a_failed_task_waits_for_its_revision_and_gets_its_description():
    journal = planned(task("t"))
    journal.run(failure("t"))
    journal.own(reserved(("t", 2)))
    assert statuses(journal.state) == {"t": "awaiting_retry"}

    journal.own(revision("t", 2, not_before=2_000.0))
    state = journal.state

    assert state.tasks["t"].description == "do t better"
    advance(state, 1_999.9)
    assert statuses(state) == {"t": "delayed"}
    advance(state, 2_000.0)
    assert statuses(state) == {"t": "ready"}


def test_a_running_retry_is_not_given_up_by_the_timer_of_its_own_delay():
    journal = planned(task("t"))
    journal.run(failure("t"))
    journal.own(revision("t", 2, not_before=journal.time))
    journal.own(reserved(("t", 2), timeout_seconds=60))
    read_by_the_next_owner = journal.state

    advance(read_by_the_next_owner, journal.time + 10)

    assert not read_by_the_next_owner.expired
    assert next_timer(read_by_the_next_owner) == journal.time + 61


def test_only_the_first_revision_of_an_attempt_counts():
    journal = planned(task("t"))
    journal.run(failure("t"))
    journal.own(revision("t", 2))

    journal.own(revision("t", 2).model_copy(update={"description": "something else", "usage": Usage(input_tokens=9)}))

    assert journal.state.tasks["t"].description == "do t better"
    assert journal.state.usage == Usage()


def test_a_final_failure_is_not_tried_again():
    journal = planned(task("t"))

    journal.run(failure("t", is_final=True))

    assert statuses(journal.state) == {"t": "failed"}


def test_a_cancelled_attempt_is_not_tried_again():
    journal = planned(task("t"))

    journal.run(failure("t").model_copy(update={"status": ResultStatus.CANCELLED}))

    assert statuses(journal.state) == {"t": "failed"}


def test_a_second_result_is_counted_as_a_cost_and_nothing_else():
    journal = planned(task("t"))
    journal.run(result("t", tokens=10))

    journal.work(result("t", worker="w2", tokens=7).model_copy(update={"output": "something else"}))

    state = journal.state
    found = state.tasks["t"].result
    assert found is not None
    assert found.output == "found"
    assert (state.uncounted, state.usage.tokens, state.in_flight) == (1, 17, 0)


def test_a_result_of_an_attempt_that_was_never_reserved_runs_nothing():
    journal = planned(task("t"), task("u", "t"))

    journal.work(result("t", 1))

    assert statuses(journal.state) == {"t": "ready", "u": "waiting"}


def test_a_late_success_of_an_attempt_that_was_failed_does_not_end_the_next_one():
    journal = planned(task("t"))
    journal.run(failure("t"))
    journal.own(revision("t", 2))
    journal.own(reserved(("t", 2)))

    journal.work(result("t", 1, worker="w2"))

    assert statuses(journal.state) == {"t": "reserved"}


def test_a_plan_with_a_circle_is_passed_over_for_the_next():
    journal = Journal()
    journal.take()
    journal.own(plan_entry(plan_of(task("a", "b"), task("b", "a"))))

    journal.own(plan_entry(plan_of(task("c"))))

    assert list(journal.state.tasks) == ["c"]


def test_i2_of_two_plans_the_first_counts():
    journal = planned(task("first"))

    journal.own(plan_entry(plan_of(task("second"))))

    assert list(journal.state.tasks) == ["first"]


def test_i2_what_a_former_owner_writes_after_a_later_taken_is_ignored():
    journal = planned(task("t"))
    former = journal.term
    journal.take("s2", delivery=2)

    journal.own(reserved(("t", 1)), term=former)
    journal.own(answer("too late"), term=former)

    assert statuses(journal.state) == {"t": "ready"}
    assert journal.state.answer is None
    assert journal.state.owner == "s2"


def test_a_request_that_is_answered_keeps_its_owner():
    journal = planned(task("t"))
    journal.own(answer())

    journal.take("s2", delivery=2)

    assert journal.state.owner == "s1"


def test_a_plan_by_somebody_else_than_a_supervisor_is_no_plan():
    journal = Journal()
    journal.take()

    journal.write(plan_entry(plan_of(task("t"))), sender="worker/w1/work", term=journal.term)

    assert journal.state.plan_entry is None


def test_a_request_that_cannot_be_read_is_answered_without_being_taken():
    journal = Journal()

    journal.own(answer("The request is invalid."))

    assert journal.state.answer is not None


def test_a_note_of_dispatch_takes_an_attempt_from_what_must_be_published_again():
    journal = planned(task("t"), task("u"))
    journal.own(reserved(("t", 1), ("u", 1)))

    journal.own(dispatched(("t", 1)))

    assert list(journal.state.dispatch_unconfirmed) == ["u"]
    assert journal.state.tasks["t"].attempts[0].task_sequence == 7


def test_the_same_task_twice_in_one_reservation_is_one_attempt():
    journal = planned(task("t"))

    journal.own(reserved(("t", 1), ("t", 1), ("t", 2)))

    assert journal.state.in_flight == 1


def test_the_first_cancellation_is_the_one_that_is_named():
    journal = planned(task("t"))

    for sequence, by in ((4, "client/a"), (9, "client/b")):
        journal.own(Decision(decision="cancel", control_sequence=sequence, by=by))

    state = journal.state
    assert state.cancelled is not None
    assert (state.cancelled.by, state.controls_seen) == ("client/a", 9)


def test_takes_without_progress_are_counted_until_something_happens():
    journal = Journal()
    for delivery in (1, 2, 3):
        journal.take(f"s{delivery}", delivery)
    assert journal.state.unproductive_takes(4) == 3

    journal.own(plan_entry(plan_of(task("t"))))

    assert journal.state.unproductive_takes(4) == 0


def test_a_clean_hand_back_is_not_a_fruitless_take():
    journal = Journal()
    journal.take("s1", 1)

    journal.own(taken("s1", 1, handed_back=True))

    assert journal.state.owner is None
    assert journal.state.unproductive_takes(2) == 0


def test_what_nobody_took_before_it_was_handed_back_is_not_a_fruitless_take():
    journal = Journal()
    journal.take("s1", 1)
    journal.write(taken("s2", 2, handed_back=True), sender="supervisor/s2")

    assert journal.state.owner == "s1"
    assert journal.state.unproductive_takes(3) == 0


def test_a_hand_back_of_a_former_owner_leaves_the_owner_alone():
    journal = Journal()
    former = journal.take("s1", 1)
    journal.take("s2", 2)

    journal.own(taken("s1", 1, handed_back=True), term=former)

    assert journal.state.owner == "s2"


def test_the_table_of_the_answer_tells_seconds_attempts_and_reasons():
    journal = planned(task("t", max_attempts=2), task("u", "t"))
    journal.run(failure("t"))
    journal.own(revision("t", 2))
    journal.run(failure("t", 2, message="again"))

    rows = [(row.id, row.status, row.attempts, row.seconds, row.reason) for row in journal.state.outcomes()]

    assert rows == [("t", "failed", 2, 2.0, "again"), ("u", "skipped", 0, 0.0, "t failed: again")]


def wide(count: int) -> list[Entry]:
    """A taken and planned request of that many tasks, all reserved, then all their results."""
    journal = planned(*(task(f"t{n}") for n in range(count)))
    journal.own(reserved(*((f"t{n}", 1) for n in range(count))))
    for number in range(count):
        journal.work(result(f"t{number}"))
    return journal.entries


def cpu_seconds(entries: list[Entry]) -> float:
    """The least of five: what the machine does beside it only adds."""
    times: list[float] = []
    for _ in range(5):
        start = time.thread_time()
        fold(REQUEST, entries)
        times.append(time.thread_time() - start)
    return min(times)


def test_a_result_costs_the_same_in_a_log_of_ten_thousand_as_in_one_of_a_hundred():
    logs = {count: wide(count) for count in (100, 10_000)}
    assert all(fold(REQUEST, entries).open_tasks == 0 for entries in logs.values())

    gc.disable()  # it looks at everything the tests have made so far
    few, many = (cpu_seconds(entries) / count for count, entries in logs.items())
    gc.enable()

    assert many <= 5 * few  # a look at every task would make it fifty times and more; caches make it nearly twice
