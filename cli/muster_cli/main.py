"""The `muster` command: reads the words, runs the command, and says in one line what went wrong."""

import errno
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, NoReturn, cast

from muster_cli.arguments import COMMANDS, parser
from muster_cli.exits import Exit
from muster_protocol.errors import BrokerAway, Invalid, MusterError

Command = Callable[[Namespace], int] | Callable[[Namespace], Coroutine[Any, Any, int]]


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run one command; returns its exit code."""
    given = parser().parse_args(words)
    module, _, name = COMMANDS[given.command].partition(":")
    try:
        command = cast("Command", getattr(import_module(module), name))
        code = _carry_out(command, given)
        sys.stdout.flush()  # here, where it can be said that this failed
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
        return _unwritten(error)


def _carry_out(command: Command, given: Namespace) -> int:
    import asyncio
    import inspect

    outcome = command(given)
    if not inspect.iscoroutine(outcome):
        return cast("int", outcome)
    return asyncio.run(_until_sigterm(outcome))


async def _until_sigterm(work: Coroutine[Any, Any, int]) -> int:
    """SIGTERM ends a command as Ctrl-C does: its own `finally` blocks clean up."""
    import asyncio
    import signal

    current = asyncio.current_task()
    start_announced = False

    def tell() -> None:
        nonlocal start_announced
        start_announced = True
        if current is not None:
            current.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tell)
    try:
        code = await work
    except asyncio.CancelledError:
        if start_announced:
            raise KeyboardInterrupt from None
        raise
    from muster_bus.service import leave

    return await leave(code)


def _unwritten(error: OSError) -> int:
    """Nobody reads what we say, or the disk is full."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # do not complain again at exit
    return Exit.FAILED if error.errno == errno.EPIPE else _fail(error, Exit.FAILED)


def _fail(error: Exception, code: Exit) -> int:
    print(f"muster: {error}", file=sys.stderr)
    return code
