"""Whether, when and how a failed attempt is tried again: values in, values out.

The class of an error selects a policy. `max_attempts` of the task bounds the attempts of every class; a policy bounds
them further. The delay doubles with each attempt, and its jitter is a hash of the attempt, so that a supervisor that
takes the request over computes the same time as the one before it.
"""

import hashlib
from dataclasses import dataclass

from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages.log import ErrorClass, Failure, Result
from muster_protocol.status_words import ResultStatus

BACKOFF_SECONDS = 0.5  # before the second attempt; doubles with each further one
MAX_BACKOFF_SECONDS = 30.0
MAX_TAKES = 3  # of a request or a task without progress or a clean hand-back: at the next one it is poison


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How one class of error is retried."""

    max_attempts: int | None = None  # None: the task's own limit alone
    backoff_seconds: float = BACKOFF_SECONDS


RETRIED, NEVER = RetryPolicy(), RetryPolicy(max_attempts=1)
POLICIES: dict[ErrorClass, RetryPolicy] = {
    "network": RETRIED,
    "timeout": RETRIED,
    "resource": RETRIED,
    "logic": RETRIED,
    "refusal": RETRIED,
    "bad_output": RETRIED,
    "poison": NEVER,
    "expired": NEVER,
    "cancelled": NEVER,
}


def is_retried(result: Result, max_attempts: int) -> bool:
    """Whether another attempt follows this result."""
    if result.status is not ResultStatus.FAILED:
        return False
    if result.error is None:
        return result.attempt < max_attempts
    if result.error.is_final:
        return False
    return result.attempt < min(max_attempts, _policy(result.error).max_attempts or max_attempts)


def retry_delay(attempt: AttemptId, error: Failure | None = None) -> float:
    """Seconds from a failure to this attempt, its next one."""
    digest = hashlib.sha256(str(attempt).encode()).digest()
    jitter = 0.75 + digest[0] / 255 / 2
    backoff = BACKOFF_SECONDS if error is None else _policy(error).backoff_seconds
    return min(MAX_BACKOFF_SECONDS, backoff * 2 ** (attempt.attempt - 2)) * jitter


def _policy(error: Failure) -> RetryPolicy:
    return POLICIES[error.error_class]
