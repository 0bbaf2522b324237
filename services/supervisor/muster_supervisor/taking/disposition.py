"""What becomes of a delivered message of a request. `disposition` only judges; the caller acts.

Two messages may have one id: another body under a used id, or the same bytes once more. One of them is the request's
lease, the one that the log's last `taken` names. Only its holder supervises; any other message is kept until the log
has an answer, because nothing may be acknowledged before: its holder may be the last who can bring the request to an
end. If the lease is gone without an answer, whoever holds another message goes on, by the log alone if the body in it
is not the one that counts (decision 23).
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from muster_bus.broker.queues import is_request_stored
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol import headers as h
from muster_protocol.fold import RequestState

OVERDUE_SECONDS = 15.0  # after the deadline: a lease, and what a takeover takes; then whoever holds a copy answers
MAX_KEPT = 32  # copies of an open request that one process holds and keeps alive; the others wait in the queue


class Disposition(Enum):
    """What to do with a delivery."""

    OURS = "supervise it"
    INHERITED = "the message with the body that counts is gone: supervise the request by its log alone"
    KEPT = "another message is the lease: keep this one until there is an answer"
    ANSWERED = "acknowledge it"
    STALE = "another supervisor holds a later delivery: leave it alone"


class Held(NamedTuple):
    """A delivered message, as far as it matters here."""

    sequence: int
    number: int  # of the delivery
    request_hash: str

    @classmethod
    def of(cls, delivery: Delivery) -> "Held":
        request_hash = h.request_hash(delivery.subject, delivery.headers, delivery.data)
        return cls(delivery.sequence, delivery.number, request_hash)


def disposition(state: RequestState, held: Held, *, is_lease_stored: bool, is_overdue: bool = False) -> Disposition:
    """Compare a delivery with the log, which was read just now; overdue means that nobody answered in time."""
    if state.answer is not None:
        return Disposition.ANSWERED
    if state.term == 0:
        return Disposition.OURS
    is_lease = state.request_sequence == held.sequence
    if is_lease and state.owner is not None and state.delivery > held.number:
        return Disposition.STALE
    if not is_lease and is_lease_stored and not is_overdue:
        return Disposition.KEPT
    return Disposition.OURS if state.request_hash == held.request_hash else Disposition.INHERITED


async def classify(bus: Bus, state: RequestState, held: Held) -> Disposition:
    """The disposition; the broker is asked only if another message is the lease."""
    is_asked = state.answer is None and state.term > 0 and state.request_sequence != held.sequence
    is_lease_stored = is_asked and await is_request_stored(bus, state.request_sequence)
    is_late = is_asked and is_overdue(state, bus.clock.now())
    return disposition(state, held, is_lease_stored=is_lease_stored, is_overdue=is_late)


def is_overdue(state: RequestState, now: float) -> bool:
    """Whether whoever leads the request should have answered long ago: its message may never be delivered again."""
    return state.deadline is not None and now > state.deadline + OVERDUE_SECONDS


def surplus(held: Iterable[int]) -> list[int]:
    """Of the messages of one open request that one process holds, those that it puts back; it keeps the earliest."""
    return sorted(held)[MAX_KEPT:]


async def report_reuse(bus: Bus, state: RequestState, delivery: Delivery) -> None:
    """Tell the sender of another body than the one that counts: the answer to the first one stands."""
    counted = state.answer.request_hash if state.answer else state.request_hash
    if counted != Held.of(delivery).request_hash:
        reason = f"id: {state.request_id} was used before for another request; its answer stands"
        await bus.report(reason, delivery, request_id=state.request_id)
