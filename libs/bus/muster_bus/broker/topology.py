"""The streams, consumers and buckets: made once by provisioning, never by a running service.

Provisioning twice changes nothing, and any number of processes may provision at once. An asset that exists and differs
in what is needed for correctness is changed, or is an error that names the difference. Sizes are the operator's and are
left alone; replicas are raised when asked, never lowered; leases become what is asked.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, NotFoundError, ServiceUnavailableError

from muster_bus.bodies import BUCKET as BODIES
from muster_bus.broker.compare import BUCKETS, BY_HAND, Change, called, changes, listed, refuse_difference
from muster_bus.broker.queues import (
    CALLBACKS,
    SAY_SECONDS,
    Queue,
    callback_queue,
    named_errors,
    request_queue,
    subjects_with_consumer,
    task_queue,
)
from muster_bus.connection import Bus
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Misconfigured
from muster_protocol.subjects import PRIORITIES, Priority
from muster_protocol.workers.card import FORGOTTEN_SECONDS

log = logging.getLogger("muster.bus")

DUPLICATES_SECONDS = 120.0
BREAKERS_AGE = 3600.0  # what did not answer an hour ago is tried like any other
LIMITS_AGE = 7200.0  # what was started so long ago counts in no window
OUTPUTS_AGE = 3600.0  # an output of a tool is reused within a request, and not when it is as old as that
_FORGET = ("KV_conflicts", "KV_tool_outputs")  # full, they let the oldest go
UPDATES = 20  # of one stream in a row; ten who provision at once need three
NAME_IN_USE = 10058  # by a stream that is configured in another way
MAX_ACK_PENDING = 20_000  # the default of 1,000 silently stalls a fleet
UNLIMITED = -1  # callbacks that wait for a receiver that is away must not hold up those of others


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What an installation decides."""

    replicas: int = 1
    lease_seconds: float = 10.0
    ack_wait_seconds: float = 30.0
    results_age: timedelta = timedelta(days=4)  # twice a day's deadline and a day's wait for people
    max_bytes: int = 1024 * 1024 * 1024
    has_lanes: bool = False  # the tags have lanes for high and low tasks beside the normal one

    @property
    def lanes(self) -> tuple[Priority, ...]:
        return PRIORITIES if self.has_lanes else ("normal",)


def streams(provisioning: Provisioning, teams: Iterable[str], tags: Iterable[str]) -> list[api.StreamConfig]:
    """Every stream, and the buckets, which are streams by their own names.

    Queues have no age (it deletes what is leased), logs no per-subject limit (it evicts plans). A worker that is dead
    is forgotten by the age of its card; a body outlives the entry that refers to it. Of conflicts and of tools' outputs
    the oldest go when there is no room.
    """
    week = timedelta(days=7).total_seconds()
    results_age = provisioning.results_age.total_seconds()
    queue = api.RetentionPolicy.WORK_QUEUE
    repeated = api.RePublish(src=subjects.ALL_RESULTS, dest=subjects.live("{{wildcard(1)}}"))
    lanes = [subjects.tasks(tag, priority) for tag in tags for priority in provisioning.lanes]
    chunks, names = f"$O.{BODIES}.C.>", f"$O.{BODIES}.M.>"
    config = api.StreamConfig
    shares = [  # a stream, and by what its size is divided
        (config("REQUESTS", subjects=[subjects.requests(team) for team in teams], retention=queue), 1),
        (config("TASKS", subjects=lanes, retention=queue), 1),
        (config(CALLBACKS, subjects=[subjects.callbacks(team) for team in teams], retention=queue), 16),
        (config("RESULTS", subjects=[subjects.ALL_RESULTS], max_age=results_age, republish=repeated), 1),
        (config("EVENTS", subjects=[subjects.ALL_EVENTS], max_age=results_age), 4),
        (config("CONTROL", subjects=[subjects.ALL_CONTROL], max_age=results_age), 16),
        (config("TURNS", subjects=[subjects.ALL_TURNS], max_age=results_age), 1),
        (config("ERRORS", subjects=[subjects.ERRORS], max_age=week), 16),
        (config("KV_workers", subjects=["$KV.workers.>"], max_age=FORGOTTEN_SECONDS, max_msgs_per_subject=1), 16),
        (config("KV_conflicts", subjects=["$KV.conflicts.>"], max_age=week, max_msgs_per_subject=1), 16),
        (config("KV_measures", subjects=["$KV.measures.>"], max_age=week, max_msgs_per_subject=1), 64),
        (config("KV_breakers", subjects=["$KV.breakers.>"], max_age=BREAKERS_AGE, max_msgs_per_subject=1), 64),
        (config("KV_limits", subjects=["$KV.limits.>"], max_age=LIMITS_AGE, max_msgs_per_subject=1), 64),
        (config("KV_tool_outputs", subjects=["$KV.tool_outputs.>"], max_age=OUTPUTS_AGE, max_msgs_per_subject=1), 16),
        (config(f"OBJ_{BODIES}", subjects=[chunks, names], max_age=2 * results_age), 1),
    ]
    return [_completed(stream, provisioning, provisioning.max_bytes // divisor) for stream, divisor in shares]


def _completed(stream: api.StreamConfig, provisioning: Provisioning, max_bytes: int) -> api.StreamConfig:
    """What all streams have in common."""
    return replace(
        stream,
        retention=stream.retention or api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.OLD if stream.name in _FORGET else api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,  # in memory the registry itself would be gone with the broker's process
        num_replicas=provisioning.replicas,
        max_bytes=max_bytes,
        max_age=stream.max_age or 0.0,
        max_msgs_per_subject=stream.max_msgs_per_subject or -1,
        duplicate_window=min(DUPLICATES_SECONDS, stream.max_age or DUPLICATES_SECONDS),
        allow_direct=True,
        allow_rollup_hdrs=str(stream.name).startswith(BUCKETS),
    )


async def provision(
    bus: Bus, provisioning: Provisioning, teams: Iterable[str], tags: Iterable[str], give_up_after: float = 0.0
) -> None:
    """Make what is missing, add new teams and tags, change what can be changed, and refuse what cannot.

    Any number of processes may do so at once, each for its own teams and tags. A broker that is away, or busy with
    copies that another process has asked for, is asked again until `give_up_after` seconds have passed.
    """
    teams, tags = sorted(set(teams)), sorted(set(tags))
    give_up, said_at = time.monotonic() + give_up_after, -math.inf
    while True:
        try:
            with named_errors("provision"):
                return await _provision(bus, provisioning, teams, tags)
        except BrokerAway as error:
            now = time.monotonic()
            if now >= give_up:
                raise
            if now - said_at >= SAY_SECONDS:
                log.warning("%s; trying again", error)
                said_at = now
            await asyncio.sleep(1)


async def _provision(bus: Bus, provisioning: Provisioning, teams: list[str], tags: list[str]) -> None:
    js = bus.nc.jetstream(timeout=10)
    wanted = streams(provisioning, teams, tags)
    for stream in wanted:
        await _make_stream(js, stream)
    for team in teams:
        await _make_consumer(js, request_queue(team), subjects.requests(team), provisioning.lease_seconds)
        await _make_consumer(js, callback_queue(team), subjects.callbacks(team), provisioning.lease_seconds)
    for tag in tags:
        for lane in provisioning.lanes:
            await _make_consumer(js, task_queue([tag], lane), subjects.tasks(tag, lane), provisioning.ack_wait_seconds)
    for stream in wanted:
        await _change_stream(bus, replace(stream, num_replicas=1))
    if provisioning.replicas > 1:  # last: until the copies are there a stream takes no new consumer
        for stream in wanted:
            await _change_stream(bus, stream)


async def remove(bus: Bus) -> None:
    """Remove every stream and bucket, with everything in it."""
    js = bus.nc.jetstream(timeout=10)
    for name in (str(stream.name) for stream in streams(Provisioning(), (), ())):
        with named_errors(f"remove {name}"), contextlib.suppress(NotFoundError):
            await js.delete_stream(name)


async def _make_stream(js: JetStreamContext, wanted: api.StreamConfig) -> None:
    """Make it unless it is there; of several who try at once, one does."""
    assert wanted.name is not None
    try:
        changes((await js.stream_info(wanted.name)).config, wanted)  # refused before anything is changed
    except NotFoundError:
        try:
            await js.add_stream(wanted)
        except BadRequestError as error:
            if error.err_code != NAME_IN_USE:
                raise


async def _change_stream(bus: Bus, wanted: api.StreamConfig) -> None:
    """Read, compare, update and read again, until nothing is missing: an update may undo what another wrote meanwhile.

    Consumers are made before, one by one, so they are what all agree on: who updates last sees theirs and adds them.
    """
    js = bus.nc.jetstream(timeout=10)
    assert wanted.name is not None
    missing: list[Change] = []
    for _ in range(UPDATES):
        recorded = await subjects_with_consumer(bus, wanted.name)
        existing = (await js.stream_info(wanted.name)).config
        missing = changes(existing, replace(wanted, subjects=[*(wanted.subjects or []), *recorded]))
        if not missing:
            return
        await _update_stream(js, existing, missing)
    raise Misconfigured(
        f"{called(wanted.name)} was changed by others after each of {UPDATES} updates; still to change: "
        f"{listed(missing)}; stop what changes it, then provision again"
    )


async def _update_stream(js: JetStreamContext, existing: api.StreamConfig, changed: list[Change]) -> None:
    what = f"{called(str(existing.name))}: {listed(changed)}"
    try:
        await js.update_stream(existing, **{change.field: change.after for change in changed})
    except ServiceUnavailableError:
        raise
    except APIError as error:
        raise Misconfigured(f"the broker refuses to change {what}: {error.description}; {BY_HAND}") from None
    log.info("changed %s", what)


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
            max_ack_pending=UNLIMITED if stream == CALLBACKS else MAX_ACK_PENDING,
        )
        await js.add_consumer(stream, config)
        return
    refuse_difference(f"consumer {name}", "max_deliver", existing.max_deliver, -1)
    refuse_difference(f"consumer {name}", "filter_subject", existing.filter_subject, subject)
    if existing.ack_wait != ack_wait:
        await js.add_consumer(stream, replace(existing, ack_wait=ack_wait))
        before = f"{existing.ack_wait:g} s" if existing.ack_wait else "the broker's default"
        text = "consumer %s: the lease is %g s instead of %s; restart the services that pull from it"
        log.warning(text, name, ack_wait, before)
