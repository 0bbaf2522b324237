"""Looks at what a planner is to know beside the request: who is up, how much time is left, the day, what was said."""

import asyncio
import logging
from datetime import UTC, datetime

from muster_bus.buckets.workers import live_workers
from muster_protocol.errors import MusterError
from muster_supervisor.control import read_controls
from muster_supervisor.owner import Owner
from muster_supervisor.planning.briefing import Seen

log = logging.getLogger("muster.supervisor")

REGISTRY_SECONDS = 1.0  # for the cards of the workers; without them a plan is made all the same


async def seen_now(owner: Owner) -> Seen:
    """What there is to see now, with what people have said by now."""
    await read_controls(owner, 0)
    try:
        async with asyncio.timeout(REGISTRY_SECONDS):
            workers = tuple(await live_workers(owner.bus))
    except (TimeoutError, MusterError) as error:
        log.debug("… request %s: planned without the registry: %s", owner.request_id, error)
        workers = ()
    today = datetime.fromtimestamp(owner.now(), UTC).strftime("%A, %d %B %Y")
    return Seen(workers, owner.seconds_left(), today, tuple(note.reason for note in owner.state.notes))
