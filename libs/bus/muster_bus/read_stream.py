"""Read what a stream holds under one subject: whole, in order, and as new as asked for.

Direct gets are answered by any replica, which may lag behind; what it returns is a prefix of what the leader has. So a
read `from_leader` takes direct batches first and the newest entries from the stream's leader.

What is read is raw: `receive.py` checks and opens it.
"""

import asyncio
import base64
import json
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from muster_bus.broker.cancelling import heeding_cancellation
from muster_bus.broker.nats_fast import PLAIN, header_lines
from muster_protocol.errors import BrokerAway
from muster_protocol.subjects import stream_of

BATCH = 1000  # the server's own limit: a longer log takes several
READ_SECONDS = 2.0
TRIES = 15  # an election takes up to nine seconds
PAUSE_SECONDS = 0.5


class Raw(NamedTuple):
    """A stored message."""

    sequence: int
    time: float  # broker time
    subject: str
    headers: dict[str, str]
    data: bytes
    stream: str = ""


async def read_subject(
    nc: Client, subject: str, after: int = 0, *, from_leader: bool = False, is_page: bool = False
) -> list[Raw]:
    """All messages of a subject after a sequence; `from_leader` includes everything that the leader has now.

    A page is at most the first thousand, for readers of what may not fit into memory.
    """
    stream, reason = stream_of(subject), ""
    for _ in range(TRIES):
        try:
            found = await _read_direct(nc, stream, subject, after, is_page)
            if from_leader:
                found += await _read_at_leader(nc, stream, subject, found[-1].sequence if found else after)
            return found
        except (TimeoutError, NatsError, _Unavailable) as error:
            reason = str(error) or "no answer in time"
        except (ValueError, KeyError) as error:  # bytes were changed on the way
            reason = f"its answer cannot be read: {error!r:.200}"
        await asyncio.sleep(PAUSE_SECONDS)
    raise BrokerAway(f"{stream} could not be read: {reason}")


async def next_page(nc: Client, subject: str, after: int) -> list[Raw]:
    """The next messages of a subject, at most a thousand from any replica; none when the leader has no more."""
    page = await read_subject(nc, subject, after, is_page=True)
    return page or await read_subject(nc, subject, after, from_leader=True)


class _Unavailable(Exception):
    """The server cannot answer now."""


async def _read_direct(nc: Client, stream: str, subject: str, after: int, is_page: bool) -> list[Raw]:
    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox)
    found: list[Raw] = []
    try:
        while True:
            ask = {"batch": BATCH, "seq": after + 1, "next_by_subj": subject}
            await nc.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(ask).encode(), reply=inbox)
            pending = 0
            while True:
                with heeding_cancellation():
                    message = await subscription.next_msg(READ_SECONDS)
                headers = message.headers or {}
                if "Nats-Sequence" in headers:  # also when the stored message brings a status of its own
                    found.append(_raw(message, stream))
                    continue
                status = headers.get("Status")
                if status == "404":
                    return found
                if status != "204":
                    raise _Unavailable(f"the broker answers with status {status}")
                pending = int(headers.get("Nats-Num-Pending", "0"))
                break
            if pending == 0 or is_page:
                return found
            after = found[-1].sequence
    finally:
        await subscription.unsubscribe()


async def _read_at_leader(nc: Client, stream: str, subject: str, after: int) -> list[Raw]:
    """Up to what the leader has now: what comes meanwhile is for the next read, or a flood would keep this one here."""
    found: list[Raw] = []
    newest = await _get(nc, stream, {"last_by_subj": subject})
    while newest is not None and after < newest.sequence:
        raw = await _get(nc, stream, {"seq": after + 1, "next_by_subj": subject})
        if raw is None:
            break  # deleted meanwhile
        found.append(raw)
        after = raw.sequence
    return found


async def _get(nc: Client, stream: str, which: dict[str, object]) -> Raw | None:
    """One message, as the stream's leader has it."""
    try:
        reply = await nc.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps(which).encode(), timeout=READ_SECONDS)
    except NoRespondersError:
        raise _Unavailable("no leader") from None
    answer: dict[str, Any] = json.loads(reply.data)
    if "error" in answer:
        if answer["error"].get("code") == 404:
            return None
        raise _Unavailable(answer["error"].get("description", ""))
    stored = answer["message"]
    return Raw(
        stored["seq"],
        timestamp(stored["time"]),
        stored["subject"],
        header_lines(base64.b64decode(stored.get("hdrs", "")).removeprefix(PLAIN)),
        base64.b64decode(stored.get("data", "")),
        stream,
    )


def _raw(message: Msg, stream: str) -> Raw:
    headers = message.headers or {}
    return Raw(
        int(headers["Nats-Sequence"]),
        timestamp(headers["Nats-Time-Stamp"]),
        headers["Nats-Subject"],
        headers,
        message.data,
        stream,
    )


def timestamp(text: str) -> float:
    """Seconds since 1970 of the broker's RFC 3339 time, whose nanoseconds `fromisoformat` would refuse."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return _second(whole) + float(f"0.{fraction or 0}")


@lru_cache(maxsize=16)  # what is stored in one second is read together
def _second(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()
