"""`python -m muster_testing.crash STEP COMMAND …`: a `muster` command that ends as a crash would, at one exact step.

A step is `before:KIND` or `after:KIND` of a log entry that the service writes, `before:ack` of a message, or
`before:read` of a request.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from muster_bus.lease import Lease
from muster_bus.log import RequestLog
from muster_cli.main import run
from muster_protocol.messages import Request

KILLED = 137  # what a shell reports of a process that was killed with SIGKILL


def die_at(step: str) -> None:
    """Make this process end at a step."""
    when, _, what = step.partition(":")
    match what:
        case "ack":
            _die_before(Lease, "ack")
        case "read":
            _die_before(Request, "read")
        case _:
            _die_around(RequestLog, "append", when, what)
            _die_around(RequestLog, "compare_and_set", when, what)


def _die_before(owner: type, name: str) -> None:
    def end(*_: object, **__: object) -> None:
        os._exit(KILLED)

    if not hasattr(owner, name):
        raise AttributeError(f"{owner.__name__} has no {name}: it was renamed, and nothing would crash")
    setattr(owner, name, end)


def _die_around(owner: type, name: str, when: str, kind: str) -> None:
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def wrapped(*arguments: Any, **named: Any) -> Any:
        is_meant = arguments[1].kind == kind
        if is_meant and when == "before":
            os._exit(KILLED)
        done = await method(*arguments, **named)
        if is_meant:
            os._exit(KILLED)
        return done

    setattr(owner, name, wrapped)


if __name__ == "__main__":
    die_at(sys.argv[1])
    sys.exit(run(sys.argv[2:]))
