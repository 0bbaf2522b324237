"""Whether the broker stores what it is given: asked by storing a mark, for whoever stores nothing else."""

import asyncio

from muster_bus.buckets.kv import Bucket
from muster_bus.buckets.workers import BUCKET
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError

EVERY_SECONDS = 5.0  # as often as a worker renews its card
KEY = "mark.storing"  # of two words: no worker has such a name; and a deletion, which nobody reads as a card


async def why_not_stored(bus: Bus) -> str:
    """Why a mark is not stored within a few seconds; empty when it is."""
    try:
        await Bucket(bus, BUCKET).delete(KEY)
    except MusterError as error:
        return bus.publisher.trouble or str(error)
    return ""


async def keep_asking(bus: Bus) -> None:
    """Store a mark now and then, so that the readiness of a service that only reads is the truth."""
    while True:
        await why_not_stored(bus)
        await asyncio.sleep(EVERY_SECONDS)
