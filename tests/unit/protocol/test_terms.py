"""What a `taken` says of a request: its body, its lease, its deadline, and whether a delivery was in vain."""

from typing import Any

import pytest

from muster_protocol.fold import RequestState, fold
from muster_protocol.messages import Taken
from tests.unit.protocol.log_builder import FAR, REQUEST, LogBuilder, plan_entry, plan_of, task
from tests.unit.protocol.log_builder import taken as taken_by


def taken(delivery: int = 1, **fields: Any) -> Taken:
    return taken_by("s1", delivery).model_copy(update=fields)


def after(*entries: tuple[Taken, int]) -> RequestState:
    """The state after these, each written under a term."""
    log = LogBuilder()
    for body, term in entries:
        log.write(body, sender="supervisor/s1", term=term)
    return log.state


def test_the_first_taken_says_which_body_counts_and_when_the_deadline_is():
    first, second = taken(request_hash="one", stored_at=7.0), taken(2, request_hash="two", deadline=FAR + 50.0)

    state = after((first, 0), (second, 0))

    assert (state.request_hash, state.deadline, state.stored_at) == ("one", FAR, 7.0)


@pytest.mark.parametrize("is_note", [True, False])
def test_the_deadline_runs_from_the_earliest_copy_that_anybody_names(is_note: bool):
    first, copy = taken(stored_at=50.0), taken(2, stored_at=20.0, request_sequence=9, handed_back=is_note)

    state = after((first, 0), (copy, 0), (copy, 0))

    assert (state.deadline, state.stored_at) == (FAR - 30.0, 20.0)


@pytest.mark.parametrize(
    "other",
    [
        taken(2, stored_at=60.0),  # came later
        taken(2, stored_at=0.0),  # does not say when it was stored
        taken(2, stored_at=20.0, request_hash="other"),  # another request under the same id
    ],
)
def test_no_other_message_moves_the_deadline(other: Taken):
    state = after((taken(stored_at=50.0), 0), (other, 0))

    assert (state.deadline, state.stored_at) == (FAR, 50.0)


def test_a_note_about_a_copy_before_anybody_took_the_request_sets_no_deadline():
    state = after((taken(stored_at=20.0, request_hash="", handed_back=True), 0))

    assert (state.deadline, state.stored_at, state.term) == (None, 0.0, 0)


def test_deliveries_of_two_messages_are_counted_apart():
    state = after((taken(1), 0), (taken(6, request_sequence=9), 0))

    assert state.unproductive_takes(6) == 0
    assert state.unproductive_takes(8) == 2


def test_a_note_about_another_message_says_nothing_about_the_lease():
    state = after((taken(1), 0), (taken(5, request_sequence=9, handed_back=True), 0))

    assert state.unproductive_takes(4) == 3


def test_a_hand_back_under_a_former_term_says_nothing_about_the_later_one():
    log = LogBuilder()
    former = log.take("s1", 1)
    log.take("s2", 2)
    log.write(taken(5, handed_back=True), sender="supervisor/s1", term=former)

    assert log.state.unproductive_takes(4) == 3


def test_a_plan_is_known_only_once_there_is_one():
    log = LogBuilder()
    log.take()
    assert log.state.plan is None

    log.own(plan_entry(plan_of(task("t"))))

    assert log.state.plan == plan_of(task("t"))
    assert fold(REQUEST, []).plan is None
