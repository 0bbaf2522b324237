"""What a `taken` means: who owns the request, which message is its lease, which body counts, when the deadline is."""

from muster_protocol.fold.budget import charge_all
from muster_protocol.fold.state import Entry, RequestState
from muster_protocol.messages import Taken


def take(state: RequestState, entry: Entry, body: Taken) -> None:
    """Begin a term, or end it; what is handed back without a term is a note about a message."""
    if body.alone:
        if body.request_sequence == state.request_sequence or not state.term:
            state.lone_takes |= {body.delivery}
        return
    if body.handed_back:
        state.owner = None if entry.term == state.term else state.owner
        is_of_lease = state.request_sequence in (0, body.request_sequence)
        if is_of_lease and entry.term in (state.term, 0):  # 0: handed back before it was taken
            note_progress(state, body.delivery)
        _see_copy(state, body)
        return
    if state.request_sequence not in (0, body.request_sequence):
        # The deliveries of two messages are counted apart.
        state.last_productive_delivery, state.lone_takes = body.delivery - 1, frozenset()
    state.term = entry.sequence
    state.owner = body.instance
    state.request_hash = state.request_hash or body.request_hash
    state.request_sequence = body.request_sequence
    state.delivery = body.delivery
    state.team = body.team
    if state.base_deadline is None:
        state.base_deadline, state.stored_at = body.deadline, body.stored_at
    charge_all(state)
    _see_copy(state, body)


def note_progress(state: RequestState, delivery: int) -> None:
    """No take until this one was in vain."""
    state.last_productive_delivery = max(state.last_productive_delivery, delivery)
    state.lone_takes = frozenset()


def _see_copy(state: RequestState, body: Taken) -> None:
    """The deadline runs from the first copy of the request, whichever was taken first."""
    is_earlier = body.request_hash == state.request_hash and 0 < body.stored_at < state.stored_at
    if is_earlier and state.base_deadline is not None:
        state.base_deadline -= state.stored_at - body.stored_at
        state.stored_at = body.stored_at
