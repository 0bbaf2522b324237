"""Which result of a task counts: one rule, for the fold, for a worker that looks a task up, and for who only counts.

A failure is a presumption, above all the time-out that an owner writes for a worker of which it hears nothing: the
first success that a worker stores counts, of whichever attempt, as long as the task has none. A success that comes
second is superseded. Of failures the first of an attempt counts. After the answer nothing does: see there first.
"""

from collections.abc import Iterable

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold.state import Entry
from muster_protocol.headers import is_owner
from muster_protocol.messages import Answer, Decision, Reserved, Result, Taken
from muster_protocol.status_words import ResultStatus


def is_counted(status: ResultStatus, *, by_owner: bool, before: ResultStatus | None, is_done: bool) -> bool:
    """Whether a result counts; `before` is what its attempt had come to, `is_done` whether the task has a success."""
    if is_done:
        return False
    if status is ResultStatus.DONE and not by_owner:
        return True
    return before is None and (by_owner or status is not ResultStatus.CANCELLED)


def is_stopped(sender: str, result: Result) -> bool:
    """Whether it says only what a worker had spent that was told to stop: it settles nothing."""
    return result.status is ResultStatus.CANCELLED and not is_owner(sender)


def settled_by(entries: Iterable[Entry], attempt: AttemptId) -> Entry | None:
    """The entry that leaves nothing to do for an attempt, in a log that is read from its reservation on.

    It is the answer, or a result that counts: the attempt's own, or another attempt's success; or a person's word
    that somebody else gets the task. Every other attempt has ended by then or comes later, for a task has one open
    attempt at a time.
    """
    term: int | None = None  # not known before the reservation itself is read
    for entry in entries:
        by_owner = is_owner(entry.sender)
        match entry.body:
            case Taken() as taken:
                term = entry.sequence if by_owner and not taken.handed_back else term
            case _ if by_owner and term not in (None, entry.term):
                continue  # a former owner's
            case Reserved():
                term = entry.term if by_owner else term
            case Answer() if by_owner:
                return entry
            case Decision(decision="reassign") as moved if by_owner:
                if (moved.task_id, moved.attempt) == (attempt.task_id, attempt.attempt + 1):
                    return entry
            case Result() as result if result.task_id == attempt.task_id:
                before = None if result.attempt == attempt.attempt else ResultStatus.FAILED
                if is_counted(result.status, by_owner=by_owner, before=before, is_done=False):
                    return entry
            case _:
                continue
    return None
