"""`python -m muster_testing.crash STEP COMMAND …`: a `muster` command that ends as a crash would, at one exact step.

A step is `before:KIND` or `after:KIND` of a log entry that the service writes, of an `abort`, of a `callback`, or of
the event of a `conflict` or of a `called_back`; `before:reserved=PURPOSE` or `before:extended=CAUSE` (or `after:`) of
such an entry for what begins so; `before:stops` or `after:stops` of the record of a conflict that says who is to stop;
`before:turn=3` of the third turn that it stores, and in the same way of a `claim`, of `outputs`, or of an `effect`;
`before:ack` of a message, or `before:read` of a request. `stop@before:KIND` pauses the service there in place of a
crash, until somebody sends SIGCONT, and `term@before:KIND` asks it to stop: both once, and it goes on from there.
"""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Bus
from muster_bus.lease import Lease
from muster_bus.log import RequestLog
from muster_cli.main import run
from muster_protocol.messages import (
    TURN_KINDS,
    Abort,
    Callback,
    CalledBack,
    ConflictFound,
    Extended,
    Message,
    Request,
    Reserved,
    Result,
)

KILLED = 137  # what a shell reports of a process that was killed with SIGKILL
SIGNALS = {"stop": signal.SIGSTOP, "term": signal.SIGTERM}


def die_at(step: str) -> None:
    """Make this process end at a step, or get a signal there."""
    fault, _, step = step.rpartition("@")
    when, _, what = step.partition(":")
    strike = _once(SIGNALS[fault]) if fault else _end
    match what:
        case "ack":
            _strike_before(Lease, "ack", strike)
        case "read":
            _strike_before(Request, "read", strike)
        case "stops":
            _strike_around(Bucket, "compare_and_set", when, _says_who_stops, strike)
        case Abort.kind | ConflictFound.kind | Callback.kind | CalledBack.kind:
            _strike_around(Bus, "store", when, _is_of(what), strike)
        case _ if what.partition("=")[0] in TURN_KINDS:
            _strike_around(Bus, "store", when, _is_numbered(what), strike)
        case Result.kind:
            _strike_around(RequestLog, "append", when, _is_of(what), strike)
            _strike_around(Bus, "store", when, _is_of(what), strike)  # a worker writes no log
        case _:
            _strike_around(RequestLog, "append", when, _is_of(what), strike)
            _strike_around(RequestLog, "compare_and_set", when, _is_of(what), strike)


def _end() -> None:
    os._exit(KILLED)


def _once(number: signal.Signals) -> Callable[[], None]:
    left = [number]

    def strike() -> None:
        if left:
            os.kill(os.getpid(), left.pop())

    return strike


def _strike_before(owner: type, name: str, strike: Callable[[], None]) -> None:
    method: Callable[..., Any] = getattr(owner, name)  # fails if it was renamed: nothing would crash

    def wrapped(*arguments: Any, **named: Any) -> Any:
        strike()
        return method(*arguments, **named)

    setattr(owner, name, wrapped)


def _strike_around(
    owner: type, name: str, when: str, is_meant: Callable[..., bool], strike: Callable[[], None]
) -> None:
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def wrapped(*arguments: Any, **named: Any) -> Any:
        is_here = is_meant(*arguments[1:])
        if is_here and when == "before":
            strike()
        done = await method(*arguments, **named)
        if is_here and when == "after":
            strike()
        return done

    setattr(owner, name, wrapped)


def _is_of(what: str) -> Callable[..., bool]:
    kind, _, of_what = what.partition("=")

    def is_meant(message: Message, *_: object) -> bool:
        said = message.purpose if isinstance(message, Reserved) else ""
        said = message.cause if isinstance(message, Extended) else said
        return message.kind == kind and said.startswith(of_what)

    return is_meant


def _is_numbered(what: str) -> Callable[..., bool]:
    """Whether it is the entry of this number among those of its kind; the first if no number is given."""
    kind, _, number = what.partition("=")
    left = [int(number or 1)]

    def is_meant(message: Message, *_: object) -> bool:
        left[0] -= message.kind == kind
        return message.kind == kind and left[0] == 0

    return is_meant


def _says_who_stops(_key: str, record: bytes, _revision: int) -> bool:
    """The fields of a record that say nothing are not written."""
    return b'"stops":' in record


if __name__ == "__main__":
    die_at(sys.argv[1])
    sys.exit(run(sys.argv[2:]))
