"""Whether, when and how a failed attempt is tried again."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages import Failure, Result, ResultStatus
from muster_protocol.messages.result import ErrorClass
from muster_protocol.plan import Retry, TaskSpec
from muster_protocol.retry import (
    MAX_BACKOFF_SECONDS,
    POLICIES,
    is_refined,
    is_retried,
    max_attempts_of,
    retry_delay,
    retry_of,
)

CLASSES: tuple[ErrorClass, ...] = get_args(ErrorClass)


def failed(error_class: str, attempt: int = 1, *, is_final: bool = False) -> Result:
    error = Failure.model_validate({"class": error_class, "message": "no", "is_final": is_final})
    return Result(
        request_id="r", task_id="t", attempt=attempt, status=ResultStatus.FAILED, error=error, worker="w", role="r"
    )


TABLE_OF_CLASSES: dict[ErrorClass, tuple[bool, bool]] = {  # is it tried again, does a model describe it better first
    "network": (True, False),
    "timeout": (True, False),
    "resource": (True, False),
    "logic": (True, True),
    "bad_output": (True, True),
    "refusal": (False, False),
    "input": (False, False),
    "budget": (False, False),
    "poison": (False, False),
    "cancelled": (False, False),
    "expired": (False, False),
    "unknown_outcome": (False, False),
}


def test_every_class_of_error_has_a_policy():
    assert set(POLICIES) == set(CLASSES) == set(TABLE_OF_CLASSES)


@pytest.mark.parametrize("error_class", CLASSES)
def test_the_class_says_whether_it_is_tried_again_and_whether_a_model_is_asked(error_class: ErrorClass):
    result = failed(error_class)

    assert (is_retried(result, 3), is_refined(result.error, Retry())) == TABLE_OF_CLASSES[error_class]


@given(st.sampled_from(CLASSES), st.integers(1, 10), st.integers(1, 10))
def test_no_attempt_follows_the_last_one(error_class: ErrorClass, attempt: int, max_attempts: int):
    expected = attempt < max_attempts and TABLE_OF_CLASSES[error_class][0]

    assert is_retried(failed(error_class, attempt), max_attempts) == expected


@pytest.mark.parametrize(
    ("own", "most", "general", "expected"),
    [
        (None, None, None, 7),
        (None, None, 5, 5),
        (None, 4, 5, 4),
        (2, 4, 5, 2),
        (2, None, None, 2),
    ],
)
def test_the_nearest_that_says_how_often_a_task_is_tried_counts(
    own: int | None, most: int | None, general: int | None, expected: int
):
    spec = TaskSpec(id="t", description="x", tag="work", max_attempts=most, retry=Retry(max_attempts=own))
    by_tag = {"work": Retry(max_attempts=general), "other": Retry(max_attempts=9)}

    assert max_attempts_of(spec, by_tag, 7) == expected


def test_a_task_overrides_what_its_tag_says_only_where_it_says_something_itself():
    by_tag = {"work": Retry(backoff_seconds=4, refine=False)}
    spec = TaskSpec(id="t", description="x", tag="work")

    assert retry_of(spec, by_tag) == by_tag["work"]
    own = spec.model_copy(update={"retry": Retry(backoff_seconds=60)})
    assert retry_of(own, by_tag) == Retry(backoff_seconds=60, refine=False)
    assert 45 <= retry_delay(AttemptId("r", "t", 2), None, retry_of(own, by_tag)) <= 75


@pytest.mark.parametrize("refine", [True, False])
def test_what_is_said_about_refining_overrides_the_class(refine: bool):
    assert is_refined(failed("network").error, Retry(refine=refine)) == refine
    assert is_refined(failed("logic").error, Retry(refine=refine)) == refine


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
