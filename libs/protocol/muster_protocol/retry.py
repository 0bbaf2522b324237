"""Whether, when and how a failed attempt is tried again: a table of values, and functions that read it.

The class of an error selects a policy. `max_attempts` of the task bounds the failed attempts of every class; a policy
bounds them further. A task, its role or its team may say something else (`Retry` in plan.py), except that a function
is never described anew: the plan's entry in the log says so for each tag. What is handed back, and what a worker that
dies leaves undone, is delivered again as the same attempt and counts as no failure. An attempt for which the limits of
a provider left no time is no failure either: the task gets one more.

The delay doubles with each attempt, and its jitter is a hash of the attempt, so that a supervisor that takes the
request over computes the same time as the one before it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages.result import ErrorClass, Failure, Result
from muster_protocol.plan import TABLE, Retry, TaskSpec
from muster_protocol.status_words import ResultStatus

BACKOFF_SECONDS = 0.5  # before the second attempt; doubles with each further one
MAX_BACKOFF_SECONDS = 30.0
MAX_TAKES = 3  # of a request or a task without progress or a clean hand-back: at the next one it is poison


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How one class of error is retried."""

    max_attempts: int | None = None  # None: the task's own limit alone
    backoff_seconds: float = BACKOFF_SECONDS
    refine: bool = False  # a model sees the error and describes the task better first; else no model is called
    resumes: bool = False  # the next attempt goes on with the turns of this one; else it begins anew
    elsewhere: bool = False  # only by another role that matches, or the role's other model; else not tried again


AGAIN = RetryPolicy(resumes=True)
REFINED = RetryPolicy(refine=True)
ELSEWHERE = RetryPolicy(elsewhere=True)
NEVER = RetryPolicy(max_attempts=1)
POLICIES: dict[ErrorClass, RetryPolicy] = {
    "network": AGAIN,
    "timeout": AGAIN,
    "resource": AGAIN,
    "logic": REFINED,
    "bad_output": REFINED,
    "refusal": ELSEWHERE,
    "input": NEVER,
    "budget": NEVER,
    "poison": NEVER,
    "cancelled": NEVER,
    "expired": NEVER,
    "unknown_outcome": NEVER,
}


def retry_of(spec: TaskSpec, by_tag: Mapping[str, Retry], role: str | None = None) -> Retry:
    """What is said about the retries of a task: by itself, else for the role that it was given to, else for its tag."""
    general = by_tag.get(role or spec.tag or "", TABLE)
    return general if spec.retry is None else spec.retry.over(general)


def max_attempts_of(spec: TaskSpec, by_tag: Mapping[str, Retry], default: int) -> int:
    """How many failed attempts end a task: the nearest that says so, the task itself first."""
    own = spec.max_attempts if spec.retry is None else spec.retry.max_attempts or spec.max_attempts
    return own or retry_of(spec, by_tag).max_attempts or default


def is_retried(result: Result, max_attempts: int, *, has_elsewhere: bool = False) -> bool:
    """Whether another attempt follows this result; `has_elsewhere`: there is another role or model for one try."""
    if result.status is not ResultStatus.FAILED:
        return False
    if result.error is None:
        return result.attempt < max_attempts
    if is_no_strike(result):
        return True
    policy = POLICIES[result.error.error_class]
    if policy.elsewhere:  # final for whoever refused, not for another
        return has_elsewhere and result.attempt < max_attempts
    if result.error.is_final:
        return False
    return result.attempt < min(max_attempts, policy.max_attempts or max_attempts)


def is_resumed(error: Failure | None) -> bool:
    """Whether the next attempt goes on with what this one has done: it failed of something else than its work."""
    return error is not None and POLICIES[error.error_class].resumes


def is_no_strike(result: Result) -> bool:
    """Whether it ended only because a limit of its provider would not have let it go on in its time."""
    return result.error is not None and result.error.limited_until is not None


def is_refined(error: Failure | None, retry: Retry) -> bool:
    """Whether a model describes the task better before its next attempt; no words mend a wait for a limit."""
    if error is not None and error.limited_until is not None:
        return False
    if retry.refine is not None:
        return retry.refine
    return error is None or POLICIES[error.error_class].refine


def retry_delay(attempt: AttemptId, error: Failure | None = None, retry: Retry = TABLE) -> float:
    """Seconds from a failure to this attempt, its next one."""
    digest = hashlib.sha256(str(attempt).encode()).digest()
    jitter = 0.75 + digest[0] / 255 / 2
    backoff = retry.backoff_seconds
    if backoff is None:
        backoff = BACKOFF_SECONDS if error is None else POLICIES[error.error_class].backoff_seconds
    return min(max(backoff, MAX_BACKOFF_SECONDS), backoff * 2 ** min(60, attempt.attempt - 2)) * jitter
