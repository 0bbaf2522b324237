"""A plan that waits for approval, replies in any order, and what the waiting does to the deadline."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from muster_protocol.fold import Entry, RequestState, TaskPhase, advance, apply, fold
from muster_protocol.fold.questions import Asked, paused_seconds
from muster_protocol.messages import Decision, LogBody, Reservation, Reserved
from muster_protocol.messages.people import APPROVE, EDIT, REJECT
from muster_protocol.status import Seen, explain, explain_task
from tests.unit.protocol.arbitrary import plans
from tests.unit.protocol.invariants import CLOSE, assert_consistent
from tests.unit.protocol.log_builder import (
    APPROVAL_ID,
    FAR,
    REQUEST,
    START,
    LogBuilder,
    answer,
    approval,
    decision,
    plan_entry,
    plan_of,
    reserved,
    statuses,
    taken,
    task,
)

PLAN, OTHER = plan_of(task("a"), task("b", "a")), plan_of(task("c"))
SUPERVISORS = ("supervisor/s1", "supervisor/s2")


def asked(until: float = FAR) -> LogBuilder:
    """A log whose plan waits for approval."""
    log = LogBuilder()
    log.take()
    log.own(plan_entry(PLAN, approve=True))
    log.own(approval(until))
    return log


def test_nothing_of_a_plan_begins_before_it_is_approved():
    log = asked()
    log.own(reserved(("a", 1)))

    assert statuses(log.state) == {"a": "waiting", "b": "waiting"}

    log.own(decision("reply", APPROVE))
    assert statuses(log.state) == {"a": "ready", "b": "waiting"}
    assert not log.state.is_held


def test_an_edited_plan_replaces_the_one_that_was_asked_about():
    log = asked()
    log.own(decision("reply", EDIT, plan=OTHER, by="client/ann"))

    assert statuses(log.state) == {"c": "ready"}
    assert log.state.plan == OTHER
    assert log.state.plan_entry is not None
    assert log.state.plan_entry.planner == "client/ann"


def test_a_rejected_request_is_ended_with_who_and_why():
    log = asked()
    log.own(decision("reply", REJECT, by="client/ann").model_copy(update={"reason": "too dear"}))

    standing = explain(log.state, Seen(log.time))
    assert standing.reason == "the plan was rejected by client/ann: too dear"
    assert log.state.cancelled is not None


def test_the_first_reply_counts_and_what_is_none_changes_nothing():
    log = asked(until=START + 60)
    log.own(decision("reply", "perhaps"))
    log.own(decision("reply", EDIT))  # without a plan
    log.own(decision("reply", EDIT, plan=plan_of(task("a", "a"))))
    log.own(decision("reply", APPROVE, "0" * 16))
    log.own(decision("reply", APPROVE, said_at=START + 61))
    log.write(decision("reply", APPROVE), sender="client/c1")
    assert log.state.open_questions == {APPROVAL_ID: None}

    log.own(decision("reply", APPROVE, said_at=START + 60))
    log.own(decision("reply", REJECT))
    log.own(decision("default", REJECT))
    assert log.state.cancelled is None
    assert statuses(log.state)["a"] == "ready"


def test_when_nobody_replies_the_default_counts():
    log = asked()
    log.own(decision("default", REJECT, by="supervisor/s1"))

    assert explain(log.state, Seen(log.time)).reason == "nobody approved the plan in time"


def test_status_says_who_may_reply_until_when_and_what_happens_otherwise():
    log = asked(until=START + 3 * 3600)

    standing = explain(log.state, Seen(START))
    assert standing.status.value == "waiting_for_person"
    assert "Carry out this plan? (approve, edit, reject)" in standing.reason
    assert "for another 3.0 h, else reject" in standing.reason
    assert not standing.is_stalled
    assert explain_task(log.state, log.state.tasks["a"], Seen(START)).reason == "for the approval of the plan"

    log.write(taken("s1", handed_back=True), sender="supervisor/s1", term=log.term)
    assert "no supervisor has it now, a reply is kept" in explain(log.state, Seen(START)).reason


def test_the_deadline_lies_behind_an_open_question_and_comes_back_with_its_decision():
    log = asked(until=START + 1000)
    began = log.time
    base = log.state.base_deadline
    assert base is not None
    assert log.state.deadline == base + START + 1000 - began

    log.time += 500
    log.own(decision("reply", APPROVE))
    assert log.state.deadline is not None
    assert abs(log.state.deadline - (base + log.time - began)) < CLOSE


def test_where_the_clock_runs_on_a_question_moves_no_deadline():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(PLAN, approve=True).model_copy(update={"person_seconds": 0.0}))
    log.own(approval(START + 1000))

    assert log.state.deadline == log.state.base_deadline


intervals = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted)


@given(st.lists(intervals, max_size=6), st.integers(0, 120))
def test_the_wait_is_the_union_of_all_intervals_and_never_more_than_the_most(found: list[list[int]], most: int):
    questions = [Asked(approval(until=end), begin) for begin, end in found]

    seconds = {second for begin, end in found for second in range(begin, end)}
    assert paused_seconds(questions, most) == min(len(seconds), most)


replies = st.builds(
    decision,
    st.sampled_from(("reply", "reply", "default")),
    st.sampled_from((APPROVE, EDIT, REJECT, "perhaps")),
    plan=st.none() | plans(3),
    said_at=st.sampled_from((0.0, START + 5, START + 10_000)),
    by=st.sampled_from(("client/ann", "client/bob")),
)
written: st.SearchStrategy[LogBody] = st.one_of(
    replies,
    replies,
    st.sampled_from((approval(START + 50), approval(START + 9_000), reserved(("a", 1)), taken("s2", 2))),
    st.builds(
        Decision, decision=st.sampled_from(("note", "refused", "cancel")), control_sequence=st.just(4), by=st.just("x")
    ),
    st.just(answer()),
)


@given(st.lists(st.tuples(written, st.sampled_from(SUPERVISORS), st.booleans(), st.floats(0, 40)), max_size=12))
@settings(max_examples=150)
def test_one_decision_per_question_whatever_the_order_the_owners_and_the_repetitions(
    found: list[tuple[LogBody, str, bool, float]],
):
    state, entries = RequestState(REQUEST), list[Entry]()
    first: Decision | None = None
    bodies = [(taken("s1"), SUPERVISORS[0], True, 0.0), (plan_entry(PLAN, approve=True), SUPERVISORS[0], True, 0.0)]
    now = START
    for place, (body, sender, is_current, seconds) in enumerate([*bodies, *found], 1):
        now += seconds
        entries.append(Entry(place, now, sender, state.term if is_current else state.term - 1, body))
        apply(state, entries[-1])
        apply(state, entries[-1])
        assert_consistent(state)
        settled = state.questions[APPROVAL_ID].decision if APPROVAL_ID in state.questions else None
        assert first is None or settled is first
        first = first or settled
        has_begun = any(task.phase is not TaskPhase.WAITING for task in state.tasks.values())
        assert not has_begun or (first is not None and first.choice in (APPROVE, EDIT))
        assert state.deadline is not None
        assert state.base_deadline is not None
        assert 0 <= state.deadline - state.base_deadline <= 24 * 3600
        is_open = bool(state.open_questions) and state.cancelled is None
        assert not is_open or state.deadline > state.questions[APPROVAL_ID].question.until or now >= FAR

    again = fold(REQUEST, entries)
    assert (again.questions, again.plan, again.deadline) == (state.questions, state.plan, state.deadline)
    assert copy.deepcopy(again.tasks) == state.tasks


def test_an_attempt_that_the_deadline_cut_short_may_take_as_long_as_the_deadline_moves():
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(task("a"), task("b")), deadline=START + 100))
    cut = Reservation(task_id="a", attempt=1, timeout_seconds=95.0, wanted_seconds=300.0)
    log.own(Reserved(attempts=(cut, Reservation(task_id="b", attempt=1, timeout_seconds=20.0))))
    begun = log.state.tasks["a"].attempts[0].reserved_at

    log.own(approval(START + 1_000))
    assert log.state.tasks["a"].attempts[0].timeout_seconds == 300.0, "while it is open, up to its limit"
    log.time = START + 60
    log.own(decision("reply", APPROVE))

    paused = log.state.paused_seconds
    first, second = (log.state.tasks[name].attempts[0] for name in "ab")
    assert 50 < paused < 61
    assert abs(first.deadline - (START + 100 + paused - 5)) < 1
    assert second.timeout_seconds == 20.0
    state = log.state
    advance(state, begun + 130)
    assert list(state.expired) == ["b"]
