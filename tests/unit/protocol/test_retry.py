"""Whether, when and how a failed attempt is tried again."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages import Failure, Result, ResultStatus
from muster_protocol.messages.log import ErrorClass
from muster_protocol.retry import MAX_BACKOFF_SECONDS, NEVER, POLICIES, is_retried, retry_delay

CLASSES: tuple[ErrorClass, ...] = get_args(ErrorClass)


def failed(error_class: str, attempt: int = 1, *, is_final: bool = False) -> Result:
    error = Failure.model_validate({"class": error_class, "message": "no", "is_final": is_final})
    return Result(
        request_id="r", task_id="t", attempt=attempt, status=ResultStatus.FAILED, error=error, worker="w", role="r"
    )


def test_every_class_of_error_has_a_policy():
    assert set(POLICIES) == set(CLASSES)


@given(st.sampled_from(CLASSES), st.integers(1, 10), st.integers(1, 10))
def test_no_attempt_follows_the_last_one(error_class: ErrorClass, attempt: int, max_attempts: int):
    expected = attempt < max_attempts and POLICIES[error_class] is not NEVER

    assert is_retried(failed(error_class, attempt), max_attempts) == expected


def test_what_is_final_done_or_cancelled_is_not_tried_again():
    done = failed("logic").model_copy(update={"status": ResultStatus.DONE})
    cancelled = failed("logic").model_copy(update={"status": ResultStatus.CANCELLED})

    assert not is_retried(failed("network", is_final=True), 3)
    assert not is_retried(done, 3)
    assert not is_retried(cancelled, 3)


@pytest.mark.parametrize("attempt", range(2, 12))
def test_the_delay_doubles_within_bounds_and_is_the_same_for_everybody(attempt: int):
    delay = retry_delay(AttemptId("r", "t", attempt))

    assert 0.75 * min(30.0, 0.5 * 2 ** (attempt - 2)) <= delay <= 1.25 * MAX_BACKOFF_SECONDS
    assert delay == retry_delay(AttemptId("r", "t", attempt))


def test_the_delays_of_different_tasks_differ():
    assert len({retry_delay(AttemptId("r", f"t{number}", 2)) for number in range(20)}) > 10
