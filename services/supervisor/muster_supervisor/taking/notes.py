"""Notes in the log about messages of a request that nobody supervises: handed back unread, or an earlier copy."""

import logging

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol import headers as h
from muster_protocol.errors import MusterError
from muster_protocol.messages import Taken

log = logging.getLogger("muster.supervisor")

RETURN_SECONDS = 1.0  # a hand-back that cannot be recorded by then counts as a take; it must not delay the hand-back


def taken_note(bus: Bus, team: str, delivery: Delivery) -> Taken:
    """Without a term it takes nothing; its deadline is not read, only the time at which the message was stored."""
    return Taken(
        instance=bus.sender.instance,
        delivery=delivery.number,
        team=team,
        deadline=delivery.time,
        request_hash=h.request_hash(delivery.subject, delivery.headers, delivery.data),
        request_sequence=delivery.sequence,
        stored_at=delivery.time,
        handed_back=True,
    )


async def note_lone_take(bus: Bus, team: str, delivery: Delivery, request_id: str) -> None:
    """Record that a suspect request is about to be read and taken, and no other one beside it."""
    note = taken_note(bus, team, delivery).model_copy(update={"handed_back": False, "alone": True})
    await bus.store(note, bus.origin(request_id))


async def note_returned(bus: Bus, team: str, delivery: Delivery) -> None:
    """Record that a delivery is handed back before a run began, so that it does not count as an unproductive take."""
    request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
    try:
        await bus.store(taken_note(bus, team, delivery), bus.origin(request_id), give_up_after=RETURN_SECONDS)
    except MusterError as error:
        log.warning("← request %s: handed back, but that was not recorded: %s", request_id, error)
