"""A command as a process: SIGTERM, one line about what went wrong, and the exit code.

The standard library only, and asyncio when the command needs it: `muster --help` must be instant.
"""

import errno
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any

from muster_protocol.errors import BrokerAway, Invalid, MusterError

# Imports leave 80,000 objects that stay: a collector that looks at them again and again takes a seventh of a start.
YOUNG = 100_000

Command = Callable[[], int | Coroutine[Any, Any, int]]


class Exit(IntEnum):
    """The exit codes of `muster` and of each service."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    CANCELLED = 4
    NO_BROKER = 5
    NO_ANSWER = 6  # in time; the request goes on
    INTERRUPTED = 130  # as shells expect after Ctrl-C


def run_command(command: Command) -> int:
    """Run it to its end; returns the exit code after at most one line on standard error."""
    gc.set_threshold(YOUNG)
    try:
        outcome = command()
        code = outcome if isinstance(outcome, int) else _run(outcome)
        sys.stdout.flush()  # here, where a failure is still reported
        return code
    except BrokerAway as error:
        return _fail(error, Exit.NO_BROKER)
    except Invalid as error:
        return _fail(error, Exit.USAGE)
    except MusterError as error:
        return _fail(error, Exit.FAILED)
    except KeyboardInterrupt:
        print("muster: stopped", file=sys.stderr)
        return Exit.INTERRUPTED
    except OSError as error:
        return _cannot_write(error)


def _run(work: Coroutine[Any, Any, int]) -> int:
    import asyncio

    return asyncio.run(_until_sigterm(work))


async def _until_sigterm(work: Coroutine[Any, Any, int]) -> int:
    """SIGTERM ends a command as Ctrl-C does: its own `finally` blocks clean up."""
    import asyncio
    import signal

    current = asyncio.current_task()
    has_sigterm = False

    def on_sigterm() -> None:
        nonlocal has_sigterm
        has_sigterm = True
        if current is not None:
            current.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, on_sigterm)
    try:
        code = await work
    except asyncio.CancelledError:
        if has_sigterm:
            raise KeyboardInterrupt from None
        raise
    from muster_bus.process.service import end_process

    return await end_process(code)


def _cannot_write(error: OSError) -> int:
    """Nobody reads standard output any more, or the disk is full."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # do not complain again at exit
    return Exit.FAILED if error.errno == errno.EPIPE else _fail(error, Exit.FAILED)


def _fail(error: Exception, code: Exit) -> int:
    from muster_bus.process.printable import printable
    from muster_bus.redact import KNOWN, without_user_info

    lines = KNOWN(without_user_info(str(error))).split("\n")  # several mistakes of a file stand on several lines
    print("muster: " + "\n".join(map(printable, lines)), file=sys.stderr)
    return code
