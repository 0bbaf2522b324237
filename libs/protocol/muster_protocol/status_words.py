"""The words for how requests, tasks and attempts stand: one vocabulary for the log, the API and the command line.

Which word applies to a request or a task is computed in `status.py`.
"""

from enum import StrEnum


class ResultStatus(StrEnum):
    """What an attempt came to."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AnswerStatus(StrEnum):
    """What a request came to."""

    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RequestStatus(StrEnum):
    """Where a request stands. The last four are those of its answer."""

    QUEUED = "queued"  # in the stream, no supervisor has it
    PLANNING = "planning"
    RUNNING = "running"
    WAITING_FOR_PERSON = "waiting_for_person"  # nothing goes on before somebody replies
    ANSWERING = "answering"  # nothing is left to wait for, or it was cancelled
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskStatus(StrEnum):
    """Where a task stands. The last four are final."""

    WAITING = "waiting"  # for its dependencies
    READY = "ready"  # to be dispatched
    QUEUED = "queued"  # dispatched, no start was seen
    RUNNING = "running"
    RETRYING = "retrying"  # an attempt failed, another one follows
    WAITING_FOR_PERSON = "waiting_for_person"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # something it depends on failed, or the request ended before it was dispatched
    CANCELLED = "cancelled"  # the request ended while it was dispatched


ENDED = frozenset({RequestStatus.DONE, RequestStatus.PARTIAL, RequestStatus.FAILED, RequestStatus.CANCELLED})


def open_status(*, has_owner: bool, has_plan: bool, is_ending: bool, is_asking: bool = False) -> RequestStatus:
    """Where a request without an answer stands; `is_ending`: it was cancelled, or no task is left to wait for.

    `is_asking`: it waits for a person, who may reply while no supervisor has it.
    """
    if is_asking and not is_ending:
        return RequestStatus.WAITING_FOR_PERSON
    if not has_owner:
        return RequestStatus.QUEUED
    if is_ending:
        return RequestStatus.ANSWERING
    return RequestStatus.RUNNING if has_plan else RequestStatus.PLANNING
