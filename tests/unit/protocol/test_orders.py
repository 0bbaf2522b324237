"""What people say about single tasks: tried again now, given to somebody else; once, whoever copies it how often."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import Entry, RequestState, TaskPhase, apply, fold, is_complete, settled_by
from muster_protocol.fold.orders import fault_of_move, fault_of_retry
from muster_protocol.messages import Budget, Decision, Failure
from muster_protocol.plan import TaskSpec
from tests.guards import guards
from tests.unit.protocol.arbitrary import logs
from tests.unit.protocol.invariants import assert_consistent, known_at
from tests.unit.protocol.log_builder import (
    REQUEST,
    LogBuilder,
    dispatched,
    failure,
    order,
    plan_entry,
    plan_of,
    planned,
    reserved,
    result,
    revision,
    statuses,
    task,
)


def failed_chain() -> LogBuilder:
    """`a` failed for good and took `b` and `c` with it; `d` still runs."""
    log = planned(task("a"), task("b", "a"), task("c", "b"), task("d"))
    log.own(reserved(("a", 1), ("d", 1)))
    log.work(failure("a", is_final=True))
    return log


def test_a_task_that_failed_gets_another_attempt_and_what_was_skipped_waits_again():
    log = failed_chain()
    assert statuses(log.state) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "reserved"}

    log.own(order("retry", "a", 2))

    assert statuses(log.state) == {"a": "ready", "b": "waiting", "c": "waiting", "d": "reserved"}
    log.run(result("a", 2), result("b"), result("c"))
    log.work(result("d"))
    assert is_complete(log.state)
    assert all(found.phase is TaskPhase.DONE for found in log.state.tasks.values())


def test_a_task_that_used_up_its_attempts_gets_exactly_one_more():
    log = planned(task("a", max_attempts=1), task("b"))
    log.own(reserved(("a", 1), ("b", 1)))
    log.work(failure("a"))

    log.own(order("retry", "a", 2))
    log.own(order("retry", "a", 2))
    log.run(failure("a", 2))

    assert statuses(log.state)["a"] == "failed"
    assert len(log.state.orders) == 1
    assert log.state.refusals[-1].reason == "attempt 2 of a is about to begin"


def test_a_task_that_was_skipped_stands_for_all_that_failed_before_it():
    log = planned(task("a"), task("b"), task("c", "a", "b"), task("d", "c"), task("e"))
    log.own(reserved(("a", 1), ("b", 1), ("e", 1)))
    log.work(failure("a", is_final=True))
    log.work(failure("b", is_final=True))

    log.own(order("retry", "d", 1))

    expected = {"a": "ready", "b": "ready", "c": "waiting", "d": "waiting", "e": "reserved"}
    assert statuses(log.state) == expected


def test_a_task_that_waits_for_its_next_attempt_is_tried_at_once():
    log = planned(task("a"), task("b"))
    log.own(reserved(("a", 1), ("b", 1)))
    log.work(failure("a"))
    log.work(failure("b"))
    log.own(revision("b", 2, not_before=log.time + 100))

    log.own(order("retry", "a", 2))
    log.own(order("retry", "b", 2))
    log.own(revision("a", 2, not_before=log.time + 100))  # it was under way, and comes too late

    assert statuses(log.state) == {"a": "ready", "b": "ready"}
    assert log.state.tasks["b"].description == "do b better"


def test_a_running_attempt_is_taken_away_without_a_strike_and_the_next_one_goes_to_the_other_role():
    log = planned(task("a", max_attempts=2))
    log.own(reserved(("a", 1)))

    log.own(order("reassign", "a", 2, to="other"))

    found = log.state.tasks["a"]
    assert (found.phase, found.tag, found.spec.tag) == (TaskPhase.READY, "other", "other")
    assert list(log.state.withdrawn) == [("a", 1)]
    assert log.state.in_flight == 0
    log.run(failure("a", 2))
    assert statuses(log.state) == {"a": "awaiting_retry"}, "the attempt that was taken away is no strike"


def test_where_an_attempt_that_was_taken_away_is_stored_is_noted_also_afterwards():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    log.own(order("reassign", "a", 2))
    log.own(reserved(("a", 2)))
    log.own(dispatched(("a", 1)))

    first, second = log.state.tasks["a"].attempts
    assert (first.task_sequence, second.task_sequence) == (7, None)
    assert list(log.state.dispatch_unconfirmed) == ["a"]


def test_a_success_of_an_attempt_that_was_taken_away_counts_if_it_comes_first():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    log.own(order("reassign", "a", 2))
    log.own(reserved(("a", 2)))
    log.work(result("a", 1))

    assert statuses(log.state) == {"a": "done"}
    assert list(log.state.overtaken) == ["a"]


def test_a_worker_that_looks_up_an_attempt_that_was_taken_away_does_not_run_it():
    log = planned(task("a"))
    place = log.own(reserved(("a", 1)))
    after = [entry for entry in log.entries if entry.sequence >= place]
    assert settled_by(after, AttemptId(REQUEST, "a", 1)) is None

    log.own(order("reassign", "a", 2))

    after = [entry for entry in log.entries if entry.sequence >= place]
    assert settled_by(after, AttemptId(REQUEST, "a", 1)) is log.entries[-1]


def test_a_task_that_waits_or_failed_can_be_given_to_somebody_else_too():
    log = failed_chain()

    log.own(order("reassign", "a", 2))
    log.own(order("reassign", "b", 1))

    assert statuses(log.state) == {"a": "ready", "b": "waiting", "c": "waiting", "d": "reserved"}
    assert {log.state.tasks[name].spec.tag for name in "ab"} == {"other"}


def test_after_it_was_given_to_somebody_else_a_refusal_by_the_first_decides_nothing():
    several = task("a").model_copy(update={"roles": ("one", "two")})
    log = planned(several)
    refusal = Failure(error_class="refusal", message="no", is_final=True)
    log.own(reserved(("a", 1)))
    log.work(failure("a").model_copy(update={"error": refusal}))

    log.own(order("reassign", "a", 2))
    log.own(reserved(("a", 2)))
    log.work(failure("a", 2).model_copy(update={"error": refusal}))

    assert statuses(log.state) == {"a": "failed"}


def test_what_cannot_be_done_says_why():
    log = failed_chain()
    state = log.state

    assert "did you mean 'a'" in fault_of_retry(state, "aa")
    assert fault_of_retry(state, "d") == "attempt 1 of d has not ended; `reassign` gives it to somebody else"
    assert fault_of_move(state, "b").startswith("b was skipped because a failed")
    log.work(result("d"))
    assert fault_of_retry(log.state, "d") == fault_of_move(log.state, "d") == "d is done"
    assert fault_of_retry(fold(REQUEST, []), "a") == "r1 has no tasks yet"


def test_a_budget_that_is_used_up_pays_for_no_further_attempt():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("a", max_attempts=1), task("b")), budget=Budget(tokens=5)))
    log.own(reserved(("a", 1)))
    log.work(failure("a").model_copy(update={"usage": result("a", tokens=5).usage}))

    assert fault_of_retry(log.state, "a") == "the budget of the request is used up"
    assert fault_of_move(log.state, "a") == "the budget of the request is used up"


def test_a_list_that_was_refused_was_never_begun():
    template = TaskSpec(id="each", description="{item}", tag="work", dependencies=("a",), over="a")
    log = planned(task("a"), template, task("b"))
    log.own(reserved(("a", 1), ("b", 1)))
    log.work(result("a").model_copy(update={"output": "no list"}))
    bad = Failure(error_class="bad_output", message="a gave no list")
    from muster_protocol.messages import Extended

    log.own(Extended(cause="over:each", refused=bad))

    assert fault_of_retry(log.state, "each") == "each was never begun: a gave no list"


@guards("libs/protocol/muster_protocol/fold/orders.py", "if body.attempt != next_attempt(task)", rule="I2", seconds=40)
@given(logs(), st.data())
@settings(max_examples=60)
def test_an_order_that_is_copied_again_by_whomever_and_whenever_changes_nothing(
    entries: list[Entry], data: st.DataObject
):
    """Two owners, a crash between the copy and what follows: the first copy of a control message counts."""
    state = RequestState(REQUEST)
    orders: list[Decision] = []
    for entry in entries:
        number = 100 + len(orders)
        body = entry.body
        if isinstance(body, Decision) and body.decision in ("retry", "reassign"):
            body = body.model_copy(update={"control_sequence": number})
        before = len(state.orders)
        apply(state, entry._replace(body=body))
        if isinstance(body, Decision) and len(state.orders) > before:
            orders.append(body)
        if orders and data.draw(st.integers(0, 3)) == 0:
            again = data.draw(st.sampled_from(orders))
            known = copy.deepcopy(known_at(state, 0.0))
            repeated = Entry(state.last_sequence, entry.time, "supervisor/s1", state.term, again)
            state.last_sequence -= 1
            apply(state, repeated)
            told: dict[str, object] = {"refused_replies": 0, "refusals": (), "last_productive_delivery": 0}
            told |= {"lone_takes": 0, "last_sequence": 0, "controls_seen": 0}
            assert known_at(state, 0.0) | told == known | told
            state.last_sequence = repeated.sequence
    assert_consistent(state)
