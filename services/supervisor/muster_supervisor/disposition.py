"""What becomes of a delivered request whose log is not empty. `classify` only looks; the caller acts."""

from enum import Enum

from muster_bus.broker.queues import is_request_stored
from muster_bus.lease import Delivery
from muster_supervisor.owner import Owner


class Disposition(Enum):
    """What to do with a delivery."""

    OURS = "supervise it"
    SETTLED = "answered, or a copy of a request that is supervised: acknowledge it"
    REUSED = "the id belongs to another request: report it and acknowledge it"
    STALE = "another supervisor holds a later delivery: leave it alone"


async def classify(owner: Owner) -> Disposition:
    """Compare the delivery with the log, which was read just now."""
    state, delivery = owner.state, owner.delivery
    if not state.request_hash and state.answer is None:
        return Disposition.OURS
    if (state.answer.request_hash if state.answer else state.request_hash) != owner.request_hash:
        return Disposition.REUSED
    if state.answer is not None:
        return Disposition.SETTLED
    if state.owner is None:
        return Disposition.OURS
    if state.request_sequence == delivery.sequence:
        return Disposition.STALE if state.delivery > delivery.number else Disposition.OURS
    is_copy = await is_request_stored(owner.bus, state.request_sequence)
    return Disposition.SETTLED if is_copy else Disposition.OURS


async def report_reuse(owner: Owner, delivery: Delivery) -> None:
    """Report a request whose id was used before with another body: the answer to the first one stands."""
    reason = f"id: {owner.request_id} was used before for another request; its answer stands"
    await owner.bus.report(reason, delivery, request_id=owner.request_id)
