"""What becomes of a request whose log is not empty, before anybody attends it."""

from enum import Enum

from muster_bus.lease import Delivery
from muster_bus.reports import Source
from muster_bus.topology import has_message
from muster_supervisor.owner import Owner


class Disposition(Enum):
    """What to do with a delivery."""

    OURS = "attend it"
    SETTLED = "nothing to do: ack it"
    STALE = "somebody holds a later delivery: say nothing"


async def classify(owner: Owner) -> Disposition:
    """Answered already, a second copy of what another supervisor attends, an id used before, or ours."""
    state, delivery = owner.state, owner.delivery
    if not state.request_hash and state.answer is None:
        return Disposition.OURS
    if (state.answer.request_hash if state.answer else state.request_hash) != owner.request_hash:
        await report_reuse(owner, delivery)
        return Disposition.SETTLED
    if state.answer is not None:
        return Disposition.SETTLED
    if state.owner is None:
        return Disposition.OURS
    if state.request_sequence == delivery.sequence:
        return Disposition.STALE if state.delivery > delivery.number else Disposition.OURS
    is_copy = await has_message(owner.bus, "REQUESTS", state.request_sequence)
    return Disposition.SETTLED if is_copy else Disposition.OURS


async def report_reuse(owner: Owner, delivery: Delivery) -> None:
    """The same id with another body: the first one's answer stands."""
    reason = f"id: {owner.request_id} was used before for another request; its answer stands"
    source = Source.of(delivery)
    await owner.bus.report(reason, source, request_id=owner.request_id)
