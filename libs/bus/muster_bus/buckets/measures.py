"""What was measured of each role of a team: shared by its supervisors, which add what they see by compare-and-set."""

from pydantic import ValidationError

from muster_bus.buckets.kv import DELETED, Bucket
from muster_bus.connection import Bus
from muster_protocol.errors import BrokerAway
from muster_protocol.workers.measured import Measured

BUCKET = "measures"
WRITE_SECONDS = 3.0
TRIES = 20  # of one addition; each supervisor of a team adds to a role once in a while


async def read_measures(bus: Bus, team: str) -> dict[str, Measured]:
    """By role; roles of which nothing is known are left out."""
    prefix = f"$KV.{BUCKET}.{team}."
    stored = await bus.read(f"{prefix}*")
    return {raw.subject.removeprefix(prefix): _read(raw.data) for raw in stored if DELETED not in raw.headers}


async def add_measured(bus: Bus, team: str, role: str, newer: Measured) -> Measured:
    """Add to what is stored of a role; returns what is stored then."""
    bucket, key = Bucket(bus, BUCKET), f"{team}.{role}"
    for _ in range(TRIES):
        value = await bucket.get(key)
        together = (Measured() if value is None else _read(value.data)).plus(newer)
        data = together.model_dump_json(exclude_defaults=True).encode()
        revision = 0 if value is None else value.revision
        if await bucket.compare_and_set(key, data, revision, give_up_after=WRITE_SECONDS) is not None:
            return together
    raise BrokerAway(f"what was measured of {key}: others wrote first in each of {TRIES} tries")


def _read(data: bytes) -> Measured:
    """Nothing is known where it cannot be read: whoever adds writes over it."""
    try:
        return Measured.model_validate_json(data)
    except ValidationError:
        return Measured()
