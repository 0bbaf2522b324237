"""The streams, consumers and buckets: made once by provisioning, never by a running service.

Provisioning twice changes nothing. An asset that exists and differs where being right depends on it is an error that
names the difference. Sizes are the operator's and are left alone; replicas are raised when asked, never lowered.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, NotFoundError, ServiceUnavailableError

from muster_bus.bodies import BUCKET as BODIES
from muster_bus.connection import Bus
from muster_protocol.errors import BrokerAway, Misconfigured

log = logging.getLogger("muster.bus")

BUCKETS = ("KV_", "OBJ_")  # how the names of the streams under them begin
DUPLICATES_SECONDS = 120.0
MAX_ACK_PENDING = 20_000  # the default of 1,000 silently stalls a fleet
WAIT_SECONDS = 60.0  # for `muster provision`, which may run beside the services


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What an installation decides."""

    replicas: int = 1
    lease_seconds: float = 10.0
    ack_wait_seconds: float = 30.0
    results_age: timedelta = timedelta(days=2)
    max_bytes: int = 1024 * 1024 * 1024


def supervisor_consumer(team: str) -> str:
    return f"s_{team}"


def worker_consumer(tag: str) -> str:
    return f"w_{tag}"


def streams(provisioning: Provisioning, teams: Iterable[str], tags: Iterable[str]) -> list[api.StreamConfig]:
    """Every stream, and the buckets, which are streams by their own names.

    Queues have no age (it deletes what is leased), logs no per-subject limit (it evicts plans). A worker that is dead
    is forgotten by the age of its card; a body outlives the entry that refers to it.
    """
    week = timedelta(days=7).total_seconds()
    results_age = provisioning.results_age.total_seconds()
    queue = api.RetentionPolicy.WORK_QUEUE
    return [
        _stream(provisioning, "REQUESTS", [f"requests.{team}" for team in teams], retention=queue),
        _stream(provisioning, "TASKS", [f"tasks.{tag}" for tag in tags], retention=queue),
        _stream(
            provisioning,
            "RESULTS",
            ["results.*"],
            max_age=results_age,
            republish=api.RePublish(src="results.*", dest="live.results.{{wildcard(1)}}"),
        ),
        _stream(provisioning, "EVENTS", ["events.*"], max_age=results_age, share=4),
        _stream(provisioning, "CONTROL", ["control.*"], max_age=results_age, share=16),
        _stream(provisioning, "ERRORS", ["errors"], max_age=week, share=16),
        _stream(provisioning, "KV_workers", ["$KV.workers.>"], max_age=15.0, share=16, history=1),
        _stream(provisioning, f"OBJ_{BODIES}", [f"$O.{BODIES}.C.>", f"$O.{BODIES}.M.>"], max_age=2 * results_age),
    ]


def _stream(
    provisioning: Provisioning,
    name: str,
    subjects: list[str],
    *,
    retention: api.RetentionPolicy = api.RetentionPolicy.LIMITS,
    share: int = 1,
    max_age: float = 0.0,
    history: int = -1,
    republish: api.RePublish | None = None,
) -> api.StreamConfig:
    return api.StreamConfig(
        name=name,
        subjects=subjects,
        retention=retention,
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,  # in memory the registry itself would be gone with the broker's process
        num_replicas=provisioning.replicas,
        max_bytes=provisioning.max_bytes // share,
        max_age=max_age,
        max_msgs_per_subject=history,
        duplicate_window=min(DUPLICATES_SECONDS, max_age or DUPLICATES_SECONDS),
        allow_direct=True,
        allow_rollup_hdrs=name.startswith(BUCKETS),
        republish=republish,
    )


async def provision(bus: Bus, provisioning: Provisioning, teams: Iterable[str], tags: Iterable[str]) -> None:
    """Make what is missing, add new teams and tags, and refuse what differs."""
    js = bus.nc.jetstream(timeout=10)
    teams, tags = sorted(set(teams)), sorted(set(tags))
    with _naming_trouble("provision"):
        for wanted in streams(provisioning, teams, tags):
            await _make_stream(js, wanted)
        for team in teams:
            lease = provisioning.lease_seconds
            await _make_consumer(js, "REQUESTS", supervisor_consumer(team), f"requests.{team}", lease)
        for tag in tags:
            await _make_consumer(js, "TASKS", worker_consumer(tag), f"tasks.{tag}", provisioning.ack_wait_seconds)
        # Last: until the copies are there a stream takes no new consumer.
        for wanted in streams(provisioning, teams, tags):
            await _raise_replicas(js, wanted)


async def remove(bus: Bus) -> None:
    """Remove every stream and bucket, with everything in it."""
    js = bus.nc.jetstream(timeout=10)
    for name in (str(stream.name) for stream in streams(Provisioning(), (), ())):
        with _naming_trouble(f"remove {name}"), contextlib.suppress(NotFoundError):
            await js.delete_stream(name)


@contextlib.contextmanager
def _naming_trouble(what: str) -> Generator[None]:
    """What NATS raises becomes an error with our names; 503 is a broker that has no leader yet, or no JetStream."""
    try:
        yield
    except ServiceUnavailableError as error:
        raise BrokerAway(f"the broker did not {what}: {error.description or 'no JetStream answers there'}") from None
    except APIError as error:
        raise Misconfigured(f"the broker refuses to {what}: {error.description}") from None
    except (TimeoutError, NatsError) as error:
        raise BrokerAway(f"the broker did not {what}: {str(error) or 'timeout'}") from None


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


async def _make_consumer(js: JetStreamContext, stream: str, name: str, subject: str, ack_wait: float) -> None:
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
    _refuse_difference(f"consumer {name}", "ack_wait", existing.ack_wait, ack_wait)
    _refuse_difference(f"consumer {name}", "max_deliver", existing.max_deliver, -1)
    _refuse_difference(f"consumer {name}", "filter_subject", existing.filter_subject, subject)


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


async def ack_wait_of(bus: Bus, stream: str, consumer: str, give_up_after: float = WAIT_SECONDS) -> float:
    """The ack wait of a consumer, as soon as it is there: services bind, they never make one."""
    js = bus.nc.jetstream(timeout=2)
    has_said = False
    give_up = time.monotonic() + give_up_after
    while time.monotonic() < give_up:
        try:
            info = await js.consumer_info(stream, consumer)
            return float(info.config.ack_wait or 30.0)
        except (TimeoutError, NatsError, NotFoundError, BadRequestError) as error:
            if not has_said:
                log.warning("waiting for consumer %s on %s (%s); `muster provision` makes it", consumer, stream, error)
                has_said = True
            await asyncio.sleep(0.25)
    raise Misconfigured(
        f"there is no consumer {consumer} on {stream} after {give_up_after:g} s; run `muster provision`"
    )


async def longest_deadline(bus: Bus) -> float:
    """Half the age of RESULTS, in seconds: a log must outlive its request."""
    age = (await _look_up(bus, "RESULTS")).config.max_age
    return age / 2 if age else float("inf")


async def last_sequence(bus: Bus, stream: str) -> int:
    """The sequence of the newest message, for readers that want only the tail."""
    return (await _look_up(bus, stream)).state.last_seq


async def _look_up(bus: Bus, stream: str) -> api.StreamInfo:
    with _naming_trouble(f"look up {stream}"):
        try:
            return await bus.nc.jetstream(timeout=5).stream_info(stream)
        except NotFoundError:
            raise Misconfigured(f"there is no stream {stream}; run `muster provision`") from None


async def teams_provisioned(bus: Bus) -> list[str]:
    """The teams that requests can be sent to; none before anything is provisioned."""
    with _naming_trouble("look up REQUESTS"):
        try:
            config = (await bus.nc.jetstream(timeout=5).stream_info("REQUESTS")).config
        except NotFoundError:
            return []
    return sorted(subject.removeprefix("requests.") for subject in config.subjects or [])


async def delete_message(bus: Bus, stream: str, sequence: int) -> bool:
    """Remove one message; False when it was not there any more."""
    try:
        return await bus.nc.jetstream(timeout=2).delete_msg(stream, sequence)
    except (TimeoutError, NatsError):
        return False


async def has_message(bus: Bus, stream: str, sequence: int) -> bool:
    """Whether a message is still stored; in doubt it is."""
    try:
        await bus.nc.jetstream(timeout=2).get_msg(stream, sequence)
    except NotFoundError:
        return False
    except (TimeoutError, NatsError):
        return True
    return True
