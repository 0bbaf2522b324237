"""The work queues and what is looked up about them: ack waits, backlogs, single messages."""

import asyncio
import contextlib
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from nats.errors import Error as NatsError
from nats.js import api
from nats.js.errors import APIError, BadRequestError, NotFoundError, ServiceUnavailableError

from muster_bus.broker.nats_repairs import UNREADABLE
from muster_bus.connection import Bus
from muster_bus.read_stream import timestamp
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import BrokerAway, Invalid, Misconfigured
from muster_protocol.headers import BODY_REF
from muster_protocol.messages import Task
from muster_protocol.subjects import PRIORITIES, STREAMS, Priority, callbacks, requests, stream_of, tasks

log = logging.getLogger("muster.bus")

WAIT_SECONDS = 60.0  # for `muster provision`, which may run beside the services
LOOK_AGAIN_SECONDS = 0.25
SAY_SECONDS = 30.0  # between two lines about what a service waits for
NO_PEERS = 10005  # for a copy: some of the brokers are still to come
LOOK_UP_SECONDS = 3.0
REQUESTS, TASKS, CALLBACKS = STREAMS["requests"], STREAMS["tasks"], STREAMS["callbacks"]
TEAM_PREFIXES = {REQUESTS: "s_", CALLBACKS: "c_"}  # of a queue's consumer for a team
LANE_PREFIXES: dict[Priority, str] = {"high": "high_", "normal": "w_", "low": "low_"}  # of those of TASKS for a tag

T = TypeVar("T")


class NotProvisioned(Misconfigured):
    """The broker says that it is not there."""


class Queue(NamedTuple):
    """A stream of work, and the consumers through which it is pulled."""

    stream: str
    consumers: tuple[str, ...]


def request_queue(team: str) -> Queue:
    return Queue(REQUESTS, (f"{TEAM_PREFIXES[REQUESTS]}{team}",))


def callback_queue(team: str) -> Queue:
    return Queue(CALLBACKS, (f"{TEAM_PREFIXES[CALLBACKS]}{team}",))


def task_queue(tags: Iterable[str], priority: Priority = "normal") -> Queue:
    """One lane of some tags."""
    return Queue(TASKS, tuple(f"{LANE_PREFIXES[priority]}{tag}" for tag in tags))


def lane_of_consumer(name: str) -> tuple[str, Priority] | None:
    """The tag of a consumer of TASKS and the lane; None: somebody else made it."""
    for priority in PRIORITIES:
        if name.startswith(LANE_PREFIXES[priority]):
            return name.removeprefix(LANE_PREFIXES[priority]), priority
    return None


@contextlib.contextmanager
def named_errors(what: str) -> Generator[None]:
    """Turn what NATS raises into an error with our names; 503 is a broker that has no leader yet, or no JetStream."""
    try:
        yield
    except ServiceUnavailableError as error:
        raise BrokerAway(f"the broker did not {what}: {error.description or 'no JetStream answers there'}") from None
    except APIError as error:
        if error.err_code == NO_PEERS:
            raise BrokerAway(f"the broker did not {what}: {error.description}") from None
        raise Misconfigured(f"the broker refuses to {what}: {error.description}") from None
    except (TimeoutError, NatsError) as error:
        raise BrokerAway(f"the broker did not {what}: {str(error) or 'timeout'}") from None
    except UNREADABLE as error:
        raise BrokerAway(f"the broker did not {what}: its reply cannot be read: {error}") from None


async def until_there(bus: Bus, look: Callable[[], Awaitable[T]], give_up_after: float = WAIT_SECONDS) -> T:
    """What a service needs to begin; until it is there the service is alive and not ready, and says now and then why.

    A broker that is away, starts without JetStream or has no leader is waited for without end. Only what the broker
    says is not there is given up.
    """
    missing_since, said_at = math.inf, -math.inf
    try:
        while True:
            try:
                return await look()
            except (BrokerAway, Misconfigured) as error:
                now = time.monotonic()
                missing_since = min(missing_since, now) if isinstance(error, NotProvisioned) else math.inf
                if now - missing_since >= give_up_after:
                    raise
                bus.lacking = str(error)
            if now - said_at >= SAY_SECONDS:
                log.warning("not ready: %s", bus.lacking)
                said_at = now
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
    finally:
        bus.lacking = ""


async def ack_wait_of(bus: Bus, queue: Queue, give_up_after: float = WAIT_SECONDS) -> float:
    """The shortest ack wait of a queue's consumers, as soon as they are there: services bind, they never make one."""
    waits = [
        await until_there(bus, partial(_ack_wait, bus, queue.stream, consumer), give_up_after)
        for consumer in queue.consumers
    ]
    bus.nc.notice_within_half(min(waits))  # a lease is held through this connection from now on
    return min(waits)


async def _ack_wait(bus: Bus, stream: str, consumer: str) -> float:
    with named_errors(f"look up consumer {consumer} on {stream}"):
        try:
            info = await bus.nc.jetstream(timeout=2).consumer_info(stream, consumer)
            return float(info.config.ack_wait or 30.0)
        except NotFoundError:
            raise NotProvisioned(f"there is no consumer {consumer} on {stream}; run `muster provision`") from None


async def longest_deadline(bus: Bus) -> float:
    """Half the age of RESULTS, in seconds: a log must outlive its request."""
    age = (await _look_up(bus, STREAMS["results"])).config.max_age
    return age / 2 if age else float("inf")


async def last_sequence(bus: Bus, subject: str) -> int:
    """The sequence of the newest message in the subject's stream, for readers that want only its end."""
    return (await _look_up(bus, stream_of(subject))).state.last_seq


async def message_count(bus: Bus, subject: str) -> int:
    """How many messages the subject's stream holds."""
    return (await _look_up(bus, stream_of(subject))).state.messages


async def _look_up(bus: Bus, stream: str) -> api.StreamInfo:
    with named_errors(f"look up {stream}"):
        try:
            return await bus.nc.jetstream(timeout=LOOK_UP_SECONDS).stream_info(stream)
        except NotFoundError:
            raise NotProvisioned(f"there is no stream {stream}; run `muster provision`") from None


async def teams_provisioned(bus: Bus) -> list[str]:
    """The teams that requests can be sent to; none before anything is provisioned."""
    with named_errors(f"look up {REQUESTS}"):
        try:
            config = (await bus.nc.jetstream(timeout=LOOK_UP_SECONDS).stream_info(REQUESTS)).config
        except NotFoundError:
            return []
    return sorted(subject.removeprefix("requests.") for subject in config.subjects or [])


async def lanes_provisioned(bus: Bus, tags: Iterable[str]) -> list[tuple[str, Priority]]:
    """The lanes for high and low tasks that some tags have, whichever team asked for them."""
    wanted = set(tags)
    with named_errors(f"look up the consumers of {TASKS}"):
        found = [lane_of_consumer(name) for name in await _consumers(bus, TASKS)]
    return [lane for lane in found if lane is not None and lane[0] in wanted and lane[1] != "normal"]


async def subjects_with_consumer(bus: Bus, stream: str) -> list[str]:
    """The subjects of the teams of a queue, or of the lanes of TASKS, that have their consumer."""
    if stream == TASKS:
        lanes = [lane_of_consumer(name) for name in await _consumers(bus, TASKS)]
        return [tasks(*lane) for lane in lanes if lane is not None]
    if stream not in TEAM_PREFIXES:
        return []
    subject_of, prefix = {REQUESTS: requests, CALLBACKS: callbacks}[stream], TEAM_PREFIXES[stream]
    return [subject_of(name.removeprefix(prefix)) for name in await _consumers(bus, stream) if name.startswith(prefix)]


async def _consumers(bus: Bus, stream: str) -> list[str]:
    found: list[str] = []
    while True:
        ask = json.dumps({"offset": len(found)}).encode()
        reply = await bus.nc.request(f"$JS.API.CONSUMER.NAMES.{stream}", ask, timeout=LOOK_UP_SECONDS)
        answer: dict[str, Any] = json.loads(reply.data)
        if "error" in answer:
            raise APIError.from_error(answer["error"])
        found += answer["consumers"] or []
        if not answer["consumers"] or len(found) >= answer["total"]:
            break
    return found


async def learn_time(bus: Bus) -> None:
    """Ask the broker what time it is: to a process that has only read old messages it looks earlier than it is."""
    try:
        reply = await bus.nc.request(f"$JS.API.STREAM.INFO.{REQUESTS}", b"", timeout=LOOK_UP_SECONDS)
        bus.clock.observe(timestamp(json.loads(reply.data)["ts"]))
    except (TimeoutError, NatsError, ValueError, KeyError) as error:
        log.debug("the broker did not say what time it is: %r", error)


async def subjects_of(bus: Bus, filtered: str) -> list[str]:
    """The subjects that a stream has messages of, in no order."""
    return list(await counts_of(bus, filtered))


async def counts_of(bus: Bus, filtered: str) -> dict[str, int]:
    """How many messages a stream has of each subject; a hundred thousand subjects at a time."""
    stream = stream_of(filtered)
    found: dict[str, int] = {}
    offset = 0
    while True:
        ask = json.dumps({"subjects_filter": filtered, "offset": offset}).encode()
        with named_errors(f"look up {stream}"):
            reply = await bus.nc.request(f"$JS.API.STREAM.INFO.{stream}", ask, timeout=LOOK_UP_SECONDS)
            answer: dict[str, Any] = json.loads(reply.data)
            if "error" in answer:
                raise Misconfigured(f"the broker refuses to look up {stream}: {answer['error'].get('description', '')}")
            page: dict[str, int] = answer["state"].get("subjects") or {}
        found |= page
        offset += len(page)
        if not page or offset >= answer.get("total", 0):
            return found


async def delete_task(bus: Bus, sequence: int) -> bool:
    """Remove a task message; False when it was not there any more."""
    try:
        return await bus.nc.jetstream(timeout=2).delete_msg(TASKS, sequence)
    except (TimeoutError, NatsError, *UNREADABLE):
        return False


async def is_request_stored(bus: Bus, sequence: int) -> bool:
    """Whether a request message is still stored; in doubt it is."""
    try:
        await bus.nc.jetstream(timeout=2).get_msg(REQUESTS, sequence)
    except NotFoundError:
        return False
    except (TimeoutError, NatsError, *UNREADABLE):
        return True
    return True


class StoredTask(NamedTuple):
    """A task message and its place; None for what is no task, which is left to whoever pulls it."""

    sequence: int
    task: Task | None


async def next_task(bus: Bus, after: int) -> StoredTask | None:
    """The first task message after a sequence; one at a time, since each may be large. None: there is no more."""
    with named_errors(f"look through {TASKS}"):
        try:
            stored = await bus.nc.jetstream(timeout=LOOK_UP_SECONDS).get_msg(TASKS, after + 1, subject=">", next=True)
        except NotFoundError:
            return None
    return StoredTask(stored.seq or after + 1, await _task_in(bus, stored))


async def _task_in(bus: Bus, stored: api.RawStreamMsg) -> Task | None:
    headers = cast("Mapping[str, str] | None", stored.headers) or {}  # nats-py does not say of what
    try:
        body = await bus.bodies.get(headers[BODY_REF]) if BODY_REF in headers else stored.data
        return Task.read(body or b"")
    except Invalid:
        return None


async def attempt_of_task(bus: Bus, sequence: int) -> AttemptId | None:
    """The attempt that a stored task message is for; None: there is no such message, or it is not a task."""
    if sequence < 1:
        return None
    with named_errors(f"look up message {sequence} of {TASKS}"):
        try:
            stored = await bus.nc.jetstream(timeout=LOOK_UP_SECONDS).get_msg(TASKS, sequence)
        except (NotFoundError, BadRequestError):  # the latter: no sequence could be so large
            return None
    task = await _task_in(bus, stored)
    return None if task is None else task.attempt_id
