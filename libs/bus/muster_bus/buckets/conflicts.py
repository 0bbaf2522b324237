"""The conflicts that coordinators have found: one record for each attempt, changed by compare-and-set."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from nats.aio.subscription import Subscription
from pydantic import ValidationError

from muster_bus.broker.queues import last_sequence, message_count
from muster_bus.buckets.kv import DELETED, Bucket
from muster_bus.connection import Bus, Incoming
from muster_protocol.attempt_id import AttemptId
from muster_protocol.conflict import Conflict
from muster_protocol.errors import MusterError

log = logging.getLogger("muster.bus")

BUCKET = "conflicts"
PREFIX = f"$KV.{BUCKET}."
ALL = f"{PREFIX}>"
WINDOW = 1000  # sequences that are looked through at a time
MAX_WINDOWS = 100  # for one page: a filter that matches nothing must not read for ever
WRITE_SECONDS = 3.0
COUNT_SECONDS = 1.0


class Revision(NamedTuple):
    """What is stored under a key; no record: it was deleted, or it cannot be read."""

    record: Conflict | None
    sequence: int
    is_deleted: bool = False


class Page(NamedTuple):
    """Records, newest first, and where the next page begins; None: there is no more."""

    records: list[Conflict]
    after: int | None


async def read_conflict(bus: Bus, key: AttemptId) -> Revision | None:
    """What is stored of an attempt; None: nothing ever was. A deleted key still has a sequence to write over."""
    for raw in await bus.read(f"{PREFIX}{key}"):
        is_deleted = DELETED in raw.headers
        return Revision(None if is_deleted else _record(raw.data), raw.sequence, is_deleted)
    return None


async def write_conflict(bus: Bus, record: Conflict, over: Revision | None) -> bool:
    """Write a record over exactly this revision, or as the first; False when somebody was faster."""
    data = record.model_dump_json(exclude_defaults=True).encode()
    revision = 0 if over is None else over.sequence
    return (
        await Bucket(bus, BUCKET).compare_and_set(record.key, data, revision, give_up_after=WRITE_SECONDS) is not None
    )


async def conflicts_of(bus: Bus, request_id: str) -> list[Conflict]:
    """Those of one request, newest first."""
    stored = await bus.read(f"{PREFIX}{request_id}.>")
    return [record for raw in reversed(stored) if (record := _record(raw.data)) is not None]


async def count_of_request(bus: Bus, request_id: str, within: float = COUNT_SECONDS) -> int:
    """How many attempts of a request were assigned twice; 0 if the broker does not say so in time."""
    try:
        async with asyncio.timeout(within):
            records = await conflicts_of(bus, request_id)
        return sum(record.attempt > 0 for record in records)  # tasks that are the same work are none
    except (TimeoutError, MusterError) as error:
        log.debug("request %s: its conflicts were not counted: %s", request_id, error)
        return 0


async def count_conflicts(bus: Bus) -> int:
    """How many records there are."""
    return await message_count(bus, ALL)


async def page_of_conflicts(
    bus: Bus,
    limit: int,
    before: int | None = None,
    is_wanted: Callable[[Conflict], bool] = lambda _: True,
    request_id: str | None = None,
) -> Page:
    """The newest that are wanted, of all or of one request, of those that were last changed before a sequence."""
    found: list[Conflict] = []
    subject = ALL if request_id is None else f"{PREFIX}{request_id}.>"
    upper = await last_sequence(bus, ALL) if before is None else before - 1
    for _ in range(MAX_WINDOWS):
        if upper <= 0:
            return Page(found, None)
        lower = max(0, upper - WINDOW) if request_id is None else 0
        stored = await bus.read(subject, lower, is_page=request_id is None)
        for raw in reversed([raw for raw in stored if raw.sequence <= upper]):
            record = _record(raw.data)
            if record is not None and is_wanted(record):
                if len(found) == limit:
                    return Page(found, raw.sequence + 1)
                found.append(record)
        upper = lower
    return Page(found, upper + 1)


async def follow_conflicts(bus: Bus, on_record: Callable[[Conflict], None]) -> Subscription:
    """Call with each record as somebody writes it; the write may still be refused."""

    def on_message(message: Incoming) -> None:
        record = _record(message.data)
        if record is not None and message.subject == f"{PREFIX}{record.key}":
            on_record(record)

    return await bus.subscribe(ALL, on_message)


def _record(data: bytes) -> Conflict | None:
    """None: not written by a coordinator, or by a newer one."""
    try:
        return Conflict.model_validate_json(data)
    except ValidationError:
        return None
