"""The streams, consumers and buckets: made once by provisioning, never by a running service.

Provisioning twice changes nothing. An asset that exists and differs in what is needed for correctness is an error that
names the difference. Sizes are the operator's and are left alone; replicas are raised when asked, never lowered; leases
become what is asked.
"""

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from muster_bus.bodies import BUCKET as BODIES
from muster_bus.broker.queues import Queue, named_errors, request_queue, task_queue
from muster_bus.connection import Bus
from muster_protocol import subjects
from muster_protocol.errors import Misconfigured

log = logging.getLogger("muster.bus")

BUCKETS = ("KV_", "OBJ_")  # how the names of the streams under them begin
DUPLICATES_SECONDS = 120.0
MAX_ACK_PENDING = 20_000  # the default of 1,000 silently stalls a fleet


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What an installation decides."""

    replicas: int = 1
    lease_seconds: float = 10.0
    ack_wait_seconds: float = 30.0
    results_age: timedelta = timedelta(days=2)
    max_bytes: int = 1024 * 1024 * 1024


def streams(provisioning: Provisioning, teams: Iterable[str], tags: Iterable[str]) -> list[api.StreamConfig]:
    """Every stream, and the buckets, which are streams by their own names.

    Queues have no age (it deletes what is leased), logs no per-subject limit (it evicts plans). A worker that is dead
    is forgotten by the age of its card; a body outlives the entry that refers to it. Full of conflicts, the oldest go.
    """
    week = timedelta(days=7).total_seconds()
    results_age = provisioning.results_age.total_seconds()
    queue = api.RetentionPolicy.WORK_QUEUE
    repeated = api.RePublish(src=subjects.ALL_RESULTS, dest=subjects.live("{{wildcard(1)}}"))
    chunks, names = f"$O.{BODIES}.C.>", f"$O.{BODIES}.M.>"
    config = api.StreamConfig
    shares = [  # a stream, and by what its size is divided
        (config("REQUESTS", subjects=[subjects.requests(team) for team in teams], retention=queue), 1),
        (config("TASKS", subjects=[subjects.tasks(tag) for tag in tags], retention=queue), 1),
        (config("RESULTS", subjects=[subjects.ALL_RESULTS], max_age=results_age, republish=repeated), 1),
        (config("EVENTS", subjects=[subjects.ALL_EVENTS], max_age=results_age), 4),
        (config("CONTROL", subjects=[subjects.ALL_CONTROL], max_age=results_age), 16),
        (config("ERRORS", subjects=[subjects.ERRORS], max_age=week), 16),
        (config("KV_workers", subjects=["$KV.workers.>"], max_age=15.0, max_msgs_per_subject=1), 16),
        (config("KV_conflicts", subjects=["$KV.conflicts.>"], max_age=week, max_msgs_per_subject=1), 16),
        (config(f"OBJ_{BODIES}", subjects=[chunks, names], max_age=2 * results_age), 1),
    ]
    return [_completed(stream, provisioning, provisioning.max_bytes // divisor) for stream, divisor in shares]


def _completed(stream: api.StreamConfig, provisioning: Provisioning, max_bytes: int) -> api.StreamConfig:
    """What all streams have in common."""
    return replace(
        stream,
        retention=stream.retention or api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.OLD if stream.name == "KV_conflicts" else api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,  # in memory the registry itself would be gone with the broker's process
        num_replicas=provisioning.replicas,
        max_bytes=max_bytes,
        max_age=stream.max_age or 0.0,
        max_msgs_per_subject=stream.max_msgs_per_subject or -1,
        duplicate_window=min(DUPLICATES_SECONDS, stream.max_age or DUPLICATES_SECONDS),
        allow_direct=True,
        allow_rollup_hdrs=str(stream.name).startswith(BUCKETS),
    )


async def provision(bus: Bus, provisioning: Provisioning, teams: Iterable[str], tags: Iterable[str]) -> None:
    """Make what is missing, add new teams and tags, and refuse what differs."""
    js = bus.nc.jetstream(timeout=10)
    teams, tags = sorted(set(teams)), sorted(set(tags))
    with named_errors("provision"):
        for wanted in streams(provisioning, teams, tags):
            await _make_stream(js, wanted)
        for team in teams:
            await _make_consumer(js, request_queue(team), subjects.requests(team), provisioning.lease_seconds)
        for tag in tags:
            await _make_consumer(js, task_queue([tag]), subjects.tasks(tag), provisioning.ack_wait_seconds)
        # Last: until the copies are there a stream takes no new consumer.
        for wanted in streams(provisioning, teams, tags):
            await _raise_replicas(js, wanted)


async def remove(bus: Bus) -> None:
    """Remove every stream and bucket, with everything in it."""
    js = bus.nc.jetstream(timeout=10)
    for name in (str(stream.name) for stream in streams(Provisioning(), (), ())):
        with named_errors(f"remove {name}"), contextlib.suppress(NotFoundError):
            await js.delete_stream(name)


async def _make_stream(js: JetStreamContext, wanted: api.StreamConfig) -> None:
    assert wanted.name is not None
    try:
        existing = (await js.stream_info(wanted.name)).config
    except NotFoundError:
        await js.add_stream(wanted)
        return
    what = _called(wanted.name)
    for field in ("retention", "discard", "storage", "max_age", "max_msgs_per_subject", "allow_direct"):
        _refuse_difference(what, field, getattr(existing, field), getattr(wanted, field))
    repeated = existing.republish.dest if existing.republish else None
    _refuse_difference(what, "republish", repeated, wanted.republish.dest if wanted.republish else None)
    missing = set(wanted.subjects or []) - set(existing.subjects or [])
    if missing:
        existing.subjects = sorted({*(existing.subjects or []), *missing})
        await js.update_stream(existing)


async def _raise_replicas(js: JetStreamContext, wanted: api.StreamConfig) -> None:
    assert wanted.name is not None
    existing = (await js.stream_info(wanted.name)).config
    before, after = existing.num_replicas or 1, wanted.num_replicas or 1
    if before < after:
        await js.update_stream(existing, num_replicas=after)
        log.info("%s gets %d replicas instead of %d; the broker copies it now", _called(wanted.name), after, before)


async def _make_consumer(js: JetStreamContext, queue: Queue, subject: str, ack_wait: float) -> None:
    stream, (name,) = queue
    try:
        existing = (await js.consumer_info(stream, name)).config
    except NotFoundError:
        config = api.ConsumerConfig(
            durable_name=name,
            filter_subject=subject,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ack_wait,
            max_deliver=-1,
            max_ack_pending=MAX_ACK_PENDING,
        )
        await js.add_consumer(stream, config)
        return
    _refuse_difference(f"consumer {name}", "max_deliver", existing.max_deliver, -1)
    _refuse_difference(f"consumer {name}", "filter_subject", existing.filter_subject, subject)
    if existing.ack_wait != ack_wait:
        await js.add_consumer(stream, replace(existing, ack_wait=ack_wait))
        before = f"{existing.ack_wait:g} s" if existing.ack_wait else "the broker's default"
        text = "consumer %s: the lease is %g s instead of %s; restart the services that pull from it"
        log.warning(text, name, ack_wait, before)


def _refuse_difference(what: str, field: str, existing: object, wanted: object) -> None:
    if existing != wanted and not (not existing and not wanted):
        raise Misconfigured(
            f"{what} exists with {field} = {_plain(existing)}, but Muster needs {_plain(wanted)}; "
            "it holds data, so change or remove it by hand, then provision again"
        )


def _called(stream: str) -> str:
    return f"bucket {stream.partition('_')[2]}" if stream.startswith(BUCKETS) else f"stream {stream}"


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else value
