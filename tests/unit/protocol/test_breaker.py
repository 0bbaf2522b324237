"""When a role gets no attempts because it does not answer, and how it comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.messages import Failure, Result, ResultStatus
from muster_protocol.messages.result import ErrorClass
from muster_protocol.workers.breaker import (
    MAX_PAUSE_SECONDS,
    PAUSE_SECONDS,
    PROBE_SECONDS,
    THRESHOLD,
    WINDOW_SECONDS,
    Breaker,
    BreakerEvent,
    BreakerState,
    event_of,
)

AT = 1_700_000_000.0
events = st.lists(
    st.builds(
        BreakerEvent, st.sampled_from(["failed", "answered", "probed"]), st.floats(0, 300).map(lambda at: AT + at)
    )
)


def failed(count: int, at: float = AT) -> list[BreakerEvent]:
    return [BreakerEvent("failed", at) for _ in range(count)]


OPEN = Breaker().after(*failed(THRESHOLD))
HALF_OPEN_AT = AT + PAUSE_SECONDS


def test_three_strikes_of_three_tasks_do_not_open_it_and_one_failure_more_does():
    assert Breaker().after(*failed(9)).is_closed
    assert OPEN.state(AT) is BreakerState.OPEN
    assert OPEN.free_at == HALF_OPEN_AT
    assert OPEN.state(HALF_OPEN_AT) is BreakerState.HALF_OPEN


def test_failures_count_that_lie_in_one_window_with_no_answer_between():
    nearly = Breaker().after(*failed(THRESHOLD - 1))

    assert nearly.after(BreakerEvent("failed", AT + WINDOW_SECONDS)).is_closed
    assert nearly.after(BreakerEvent("answered", AT), *failed(THRESHOLD - 1, AT + 1)).is_closed


def test_while_a_probe_is_out_nobody_gets_another_until_it_is_not_waited_for():
    probed = OPEN.after(BreakerEvent("probed", HALF_OPEN_AT))

    assert probed.state(HALF_OPEN_AT) is BreakerState.HALF_OPEN
    assert probed.free_at == HALF_OPEN_AT + PROBE_SECONDS


def test_a_probe_that_is_answered_closes_it_and_one_that_fails_opens_it_for_twice_as_long():
    probed = OPEN.after(BreakerEvent("probed", HALF_OPEN_AT))
    again = probed.after(BreakerEvent("failed", HALF_OPEN_AT + 1))

    assert probed.after(BreakerEvent("answered", HALF_OPEN_AT + 1)) == Breaker()
    assert again.free_at == HALF_OPEN_AT + 1 + 2 * PAUSE_SECONDS


def test_what_was_given_out_before_it_opened_says_nothing_when_it_fails_after():
    assert OPEN.after(*failed(50, AT + 1)) == OPEN


def test_the_pause_ends_to_grow():
    assert Breaker(openings=1_000_000, opened_at=AT).free_at == AT + MAX_PAUSE_SECONDS


@given(events)
def test_the_pause_is_bounded_and_every_state_has_a_way_out(seen: list[BreakerEvent]):
    breaker = Breaker().after(*seen)
    last = max((event.at for event in seen), default=AT)

    assert breaker.free_at <= last + max(MAX_PAUSE_SECONDS, PROBE_SECONDS)
    assert len(breaker.failures) < THRESHOLD
    probed = breaker.after(BreakerEvent("probed", last + MAX_PAUSE_SECONDS))
    assert probed.after(BreakerEvent("answered", last + MAX_PAUSE_SECONDS + 1)) == Breaker()
    assert breaker.is_closed or not probed.after(BreakerEvent("failed", last + MAX_PAUSE_SECONDS + 1)).is_closed


@given(events)
def test_it_opens_only_by_enough_failures_in_a_row(seen: list[BreakerEvent]):
    before = Breaker()
    for event in seen:
        after = before.after(event)
        if before.is_closed and not after.is_closed:
            assert event.what == "failed"
            assert len(before.failures) == THRESHOLD - 1
            assert event.at - before.failures[0] < WINDOW_SECONDS
        before = after


@given(events)
def test_what_is_stored_is_read_as_it_was(seen: list[BreakerEvent]):
    breaker = Breaker().after(*seen)

    assert Breaker.model_validate_json(breaker.model_dump_json(exclude_defaults=True)) == breaker


@pytest.mark.parametrize(
    ("error_class", "by_owner", "what"),
    [
        ("network", False, "failed"),
        ("resource", False, "failed"),
        ("timeout", False, "failed"),
        ("timeout", True, "failed"),
        ("resource", True, None),  # nobody serves its tag, or its message is too large
        ("logic", False, "answered"),
        ("bad_output", False, "answered"),
        ("refusal", False, "answered"),
        ("input", False, None),
        ("budget", False, None),
        ("poison", False, None),
        ("expired", False, None),
        ("unknown_outcome", False, None),
    ],
)
def test_the_class_says_whether_a_failure_speaks_against_the_role(
    error_class: ErrorClass, by_owner: bool, what: str | None
):
    event = event_of(result(ResultStatus.FAILED, error_class), AT, by_owner=by_owner)

    assert (None if event is None else event.what) == what


def test_a_success_is_an_answer_and_a_cancelled_attempt_is_none():
    assert event_of(result(ResultStatus.DONE), AT, by_owner=False) == BreakerEvent("answered", AT)
    assert event_of(result(ResultStatus.CANCELLED, "network"), AT, by_owner=False) is None


def result(status: ResultStatus, error_class: ErrorClass | None = None) -> Result:
    error = None if error_class is None else Failure(error_class=error_class, message="no")
    return Result(request_id="r1", task_id="t1", attempt=1, status=status, error=error, worker="w1", role="work")
