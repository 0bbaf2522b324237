"""What a coordinator says about a conflict: who runs it, who is to stop, and that there is one."""

import logging
import secrets

from muster_bus.connection import Bus
from muster_coordinator.conflicts.spans import record_conflict
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict, SideId
from muster_protocol.messages import Abort, Check, ConflictFound

log = logging.getLogger("muster.coordinator")

STORE_SECONDS = 3.0


async def ask_who_runs(bus: Bus, key: AttemptId, at: float) -> None:
    """Store a check; every answer to it is later than `at`."""
    check = Check(request_id=key.request_id, attempts=((key.task_id, key.attempt),), at=at)
    await bus.store(check, bus.origin(key.request_id, nonce=secrets.token_hex(4)), give_up_after=STORE_SECONDS)


async def tell_to_stop(bus: Bus, record: Conflict, stop: SideId) -> None:
    """Store an abort of one side."""
    abort = Abort(
        request_id=record.request_id,
        attempts=((record.task_id, record.attempt),),
        reason=record.why,
        side=stop,
        keeps=0 if record.keep is None else record.keep.task_sequence,
    )
    origin = bus.origin(record.request_id, nonce=secrets.token_hex(4))
    await bus.store(abort, origin, give_up_after=STORE_SECONDS)
    log.info("■ abort   %s  %s", record.attempt_id, stop, extra=_fields(record))


async def announce(bus: Bus, record: Conflict) -> None:
    """Store the event; its id makes a second one of the same conflict a duplicate."""
    found = ConflictFound.of_record(record)
    stored = await bus.store(found, bus.origin(record.request_id), give_up_after=STORE_SECONDS)
    if not stored.is_duplicate:
        log.warning("! %s/%s attempt %d: %s: %s", *record.attempt_id, found.what, record.why, extra=_fields(record))
        record_conflict(bus.tracing, record)


def without_effect(record: Conflict) -> list[SideId]:
    """The sides that were told to stop and have not ended."""
    return [stop for stop in record.stops if (side := record.side(stop)) is not None and side.ended is None]


def _fields(record: Conflict) -> dict[str, object]:
    return {"request": record.request_id, "task": record.task_id, "attempt": record.attempt}
