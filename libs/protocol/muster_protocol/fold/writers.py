"""Whose entry of a kind counts: the table of writers."""

from enum import StrEnum

from muster_protocol.fold.state import Entry, RequestState
from muster_protocol.headers import is_owner
from muster_protocol.messages import (
    Answer,
    Decision,
    Dispatched,
    Extended,
    LogBody,
    PlanRecorded,
    Question,
    Reserved,
    Result,
    Revision,
    Taken,
)


class Writer(StrEnum):
    """Whose entry counts."""

    ANY_OWNER = "any supervisor"
    THE_OWNER = "the owner, under its term"
    OWNER_OR_WORKER = "a worker, or the owner under its term"


WRITERS: dict[type[LogBody], Writer] = {
    Taken: Writer.ANY_OWNER,
    PlanRecorded: Writer.THE_OWNER,
    Reserved: Writer.THE_OWNER,
    Dispatched: Writer.THE_OWNER,
    Result: Writer.OWNER_OR_WORKER,
    Revision: Writer.THE_OWNER,
    Question: Writer.THE_OWNER,
    Decision: Writer.THE_OWNER,
    Extended: Writer.THE_OWNER,
    Answer: Writer.THE_OWNER,
}


def may_write(state: RequestState, entry: Entry, writer: Writer) -> bool:
    """Whether an entry counts, by who wrote it and when."""
    by_owner = is_owner(entry.sender)
    if writer is Writer.OWNER_OR_WORKER and not by_owner:
        return True
    return by_owner and state.answer is None and (writer is Writer.ANY_OWNER or entry.term == state.term)
