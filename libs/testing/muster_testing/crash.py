"""`python -m muster_testing.crash STEP COMMAND …`: a `muster` command that ends as a crash would, at one exact step.

A step is `before:KIND` or `after:KIND` of a log entry that the service writes, of an `abort` or of the event of a
`conflict`; `before:stops` or `after:stops` of the record of a conflict that says who is to stop; `before:ack` of a
message, or `before:read` of a request.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Bus
from muster_bus.lease import Lease
from muster_bus.log import RequestLog
from muster_cli.main import run
from muster_protocol.messages import Abort, ConflictFound, Message, Request

KILLED = 137  # what a shell reports of a process that was killed with SIGKILL


def die_at(step: str) -> None:
    """Make this process end at a step."""
    when, _, what = step.partition(":")
    match what:
        case "ack":
            _die_before(Lease, "ack")
        case "read":
            _die_before(Request, "read")
        case "stops":
            _die_around(Bucket, "compare_and_set", when, _says_who_stops)
        case Abort.kind | ConflictFound.kind:
            _die_around(Bus, "store", when, _is_of(what))
        case _:
            _die_around(RequestLog, "append", when, _is_of(what))
            _die_around(RequestLog, "compare_and_set", when, _is_of(what))


def _die_before(owner: type, name: str) -> None:
    def end(*_: object, **__: object) -> None:
        os._exit(KILLED)

    if not hasattr(owner, name):
        raise AttributeError(f"{owner.__name__} has no {name}: it was renamed, and nothing would crash")
    setattr(owner, name, end)


def _die_around(owner: type, name: str, when: str, is_meant: Callable[..., bool]) -> None:
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def wrapped(*arguments: Any, **named: Any) -> Any:
        is_here = is_meant(*arguments[1:])
        if is_here and when == "before":
            os._exit(KILLED)
        done = await method(*arguments, **named)
        if is_here:
            os._exit(KILLED)
        return done

    setattr(owner, name, wrapped)


def _is_of(kind: str) -> Callable[..., bool]:
    def is_meant(message: Message, *_: object) -> bool:
        return message.kind == kind

    return is_meant


def _says_who_stops(_key: str, record: bytes, _revision: int) -> bool:
    """The fields of a record that say nothing are not written."""
    return b'"stops":' in record


if __name__ == "__main__":
    die_at(sys.argv[1])
    sys.exit(run(sys.argv[2:]))
