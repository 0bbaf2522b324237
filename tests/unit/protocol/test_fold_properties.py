"""The fold under any log: repeated, cut, read again, written by several owners, or meaningless."""

import copy
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from muster_protocol.fold import FINAL, Entry, RequestState, TaskPhase, advance, apply, fold, next_timer, settled_by
from muster_protocol.headers import is_owner
from muster_protocol.messages import Result, ResultStatus
from muster_protocol.plan import Plan, is_acyclic
from tests.unit.protocol.arbitrary import broken_plans, logs, plans
from tests.unit.protocol.invariants import assert_consistent, known_at
from tests.unit.protocol.log_builder import REQUEST

LATER = 10_000.0
moderately = settings(max_examples=40)


@given(logs())
@moderately
def test_any_log_folds_to_a_consistent_state(entries: list[Entry]):
    state = RequestState(REQUEST)

    for entry in entries:
        apply(state, entry)
        assert_consistent(state)


@given(logs(), st.data())
@moderately
def test_reading_again_from_any_earlier_place_changes_nothing(entries: list[Entry], data: st.DataObject):
    state = RequestState(REQUEST)

    for place, entry in enumerate(entries):
        apply(state, entry)
        again = data.draw(st.integers(0, place)) if place % 5 == 0 else place
        for repeated in entries[again : place + 1]:
            apply(state, repeated)

    assert known_at(state, LATER) == known_at(fold(REQUEST, entries), LATER)


@given(logs(), st.lists(st.floats(0, 100), max_size=10), st.floats(0, 100))
@moderately
def test_a_state_that_watched_time_pass_equals_one_that_is_read_later(
    entries: list[Entry], pauses: list[float], later: float
):
    watching = RequestState(REQUEST)

    for place, entry in enumerate(entries):
        apply(watching, entry)
        if place < len(pauses):
            advance(watching, 1_000 + pauses[place])
            next_timer(watching)

    now = 1_000 + max(pauses, default=0) + later
    assert known_at(watching, now) == known_at(fold(REQUEST, entries), now)


@given(logs())
@moderately
def test_i2_the_first_plan_and_the_first_answer_stay(entries: list[Entry]):
    states = [fold(REQUEST, entries[:end]) for end in range(len(entries) + 1)]

    for before, after in pairwise(states):
        assert before.plan_entry is None or after.plan_entry == before.plan_entry
        assert before.answer is None or after.answer == before.answer


@given(logs())
@moderately
def test_i2_the_first_result_of_an_attempt_counts_until_a_workers_success_overrules_a_failure(entries: list[Entry]):
    state = RequestState(REQUEST)
    counted: dict[tuple[str, int], Result] = {}

    for entry in entries:
        apply(state, entry)
        for task_id, task in state.tasks.items():
            for attempt in task.attempts:
                if attempt.result is not None:
                    first = counted.setdefault((task_id, attempt.number), attempt.result)
                    if attempt.result is not first:
                        assert (first.status is ResultStatus.DONE, entry.body) == (False, attempt.result)
                        assert task.success is attempt.result
                        counted[task_id, attempt.number] = attempt.result


@given(logs())
@moderately
def test_i4_the_first_success_that_a_worker_stored_before_the_answer_is_the_result_of_its_task(entries: list[Entry]):
    state = RequestState(REQUEST)
    first: dict[str, Result] = {}

    for entry in entries:
        body, is_open = entry.body, state.answer is None
        apply(state, entry)
        if isinstance(body, Result) and body.status is ResultStatus.DONE and is_open and not is_owner(entry.sender):
            task = state.tasks.get(body.task_id)
            if task is not None and 1 <= body.attempt <= len(task.attempts):
                first.setdefault(body.task_id, body)
        for task_id, success in first.items():
            task = state.tasks[task_id]
            assert (task.phase, task.result) == (TaskPhase.DONE, task.success)
            assert task.success is success or is_owner(_sender_of(task.success, entries))


def _sender_of(body: Result | None, entries: list[Entry]) -> str:
    return next(entry.sender for entry in entries if entry.body is body)


@given(logs())
@moderately
def test_a_worker_that_looks_an_attempt_up_finds_it_settled_exactly_when_the_fold_does(entries: list[Entry]):
    state = fold(REQUEST, entries)

    for task_id, task in state.tasks.items():
        for attempt in task.attempts:
            after = [entry for entry in entries if entry.sequence >= attempt.reserved_sequence]
            is_settled = state.answer is not None or task.success is not None or attempt.result is not None
            assert (settled_by(after, state.attempt_id(task_id, attempt.number)) is not None) == is_settled


@given(logs())
@moderately
def test_what_has_ended_stays_as_it_ended_unless_a_success_comes_late(entries: list[Entry]):
    state = RequestState(REQUEST)
    ended: dict[str, TaskPhase] = {}

    for entry in entries:
        apply(state, entry)
        dropped = ended.keys() & state.dropped.keys()
        assert all(ended.pop(task_id) is TaskPhase.SKIPPED for task_id in dropped)
        moved = {task_id for task_id, phase in ended.items() if state.tasks[task_id].phase is not phase}
        assert all(ended[task_id] is not TaskPhase.DONE for task_id in moved)
        failed = {task_id for task_id in moved if ended[task_id] is TaskPhase.FAILED}
        assert len(failed) == bool(moved), "one success at a time, and nothing is revived without one"
        assert all(state.tasks[task_id].success is entry.body for task_id in failed)
        ended = {task_id: task.phase for task_id, task in state.tasks.items() if task.phase in FINAL}


@given(logs(), st.data())
@moderately
def test_a_former_owner_changes_nothing(entries: list[Entry], data: st.DataObject):
    end = data.draw(st.integers(0, len(entries)))
    state = fold(REQUEST, entries[:end])
    before = copy.deepcopy(known_at(state, LATER))
    late = [
        Entry(state.last_sequence + 1 + place, LATER, "supervisor/s1", state.term - 1, entry.body)
        for place, entry in enumerate(entries)
        if entry.body.kind != "taken"
    ]

    for entry in late:
        apply(state, entry)

    assert known_at(state, LATER) | {"last_sequence": 0} == before | {
        "last_sequence": 0,
        "started_at": state.started_at,
    }


@given(logs())
@moderately
def test_after_the_answer_only_costs_are_added(entries: list[Entry]):
    state = RequestState(REQUEST)
    answered: dict[str, object] | None = None
    free: dict[str, object] = {
        "last_sequence": 0,
        "usage": 0,
        "uncounted": 0,
        "last_productive_delivery": 0,
        "lone_takes": 0,
    }

    for entry in entries:
        apply(state, entry)
        if answered is not None:
            assert known_at(state, 0.0) | free == answered | free
        elif state.answer is not None:
            answered = copy.deepcopy(known_at(state, 0.0))


@given(plans())
@moderately
def test_every_plan_without_a_cycle_is_accepted(plan: Plan):
    assert is_acyclic(plan)


@given(broken_plans())
@moderately
def test_a_plan_with_a_cycle_a_repeated_id_or_an_unknown_dependency_is_refused(plan: Plan):
    assert not is_acyclic(plan)
