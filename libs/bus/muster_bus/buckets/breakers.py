"""The breakers of the roles: shared by the supervisors of a team, which add what they see by compare-and-set."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from muster_bus.buckets.kv import DELETED, Bucket
from muster_bus.connection import Bus
from muster_protocol.errors import BrokerAway, Misconfigured
from muster_protocol.workers.breaker import Breaker, BreakerEvent

BUCKET = "breakers"
WRITE_SECONDS = 3.0
TRIES = 20  # of one addition


async def read_breakers(bus: Bus, team: str) -> dict[str, Breaker]:
    """By role; what nobody has seen fail is left out."""
    prefix = f"$KV.{BUCKET}.{team}."
    stored = await bus.read(f"{prefix}*")
    return {raw.subject.removeprefix(prefix): _read(raw.data) for raw in stored if DELETED not in raw.headers}


async def shown_breakers(bus: Bus, now: float) -> list[dict[str, Any]]:
    """Those that are not closed, of all teams; an installation that an older version provisioned has none."""
    prefix = f"$KV.{BUCKET}."
    try:
        stored = await bus.read(f"{prefix}>")
    except Misconfigured:
        return []
    found = {raw.subject.removeprefix(prefix): _read(raw.data) for raw in stored if DELETED not in raw.headers}
    return [breaker.shown(role, now) for role, breaker in sorted(found.items()) if not breaker.is_closed]


async def add_events(bus: Bus, team: str, role: str, events: Sequence[BreakerEvent]) -> Breaker:
    """Add what was seen to what is stored of a role; returns what is stored then."""
    bucket, key = Bucket(bus, BUCKET), f"{team}.{role}"
    for _ in range(TRIES):
        value = await bucket.get(key)
        before = Breaker() if value is None else _read(value.data)
        after = before.after(*events)
        if after == before:
            return before
        data = after.model_dump_json(exclude_defaults=True).encode()
        revision = 0 if value is None else value.revision
        if await bucket.compare_and_set(key, data, revision, give_up_after=WRITE_SECONDS) is not None:
            return after
    raise BrokerAway(f"the breaker of {key}: others wrote first in each of {TRIES} tries")


def _read(data: bytes) -> Breaker:
    """Closed where it cannot be read: whoever adds writes over it."""
    try:
        return Breaker.model_validate_json(data)
    except ValidationError:
        return Breaker()
