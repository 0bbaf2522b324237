"""Functions that do what functions of a team may do by accident. Whatever they start writes its pid into `pids`."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from muster_protocol.errors import Retryable, Terminal

FOREVER = 1000.0
_here = 0


def echo(text: str) -> str:
    return text


async def echo_later(text: str) -> str:
    await asyncio.sleep(0)
    return text


def count() -> int:
    """How often this process has been asked."""
    global _here
    _here += 1
    return _here


def pid() -> int:
    return os.getpid()


def variables() -> dict[str, str]:
    return dict(os.environ)


def say(text: str, error: str) -> str:
    print(text)
    print(error, file=sys.stderr)
    return "said"


def flood(megabytes: int) -> str:
    for _ in range(megabytes * 1024):
        print("x" * 1023)
    return "all of it"


def start_many(folder: str, number: int) -> None:
    """Some in this group, some in sessions of their own, some whose parent ends at once."""
    for each in range(number):
        if os.fork() == 0:
            if each % 3 > 0:
                os.setsid()
            if each % 3 == 2 and os.fork() > 0:
                os._exit(0)
            _wait(Path(folder))
    while len(started(Path(folder))) < number:
        time.sleep(0.01)
    (Path(folder) / "ready").touch()
    time.sleep(FOREVER)


def leave_one(folder: str) -> str:
    """A daemon, as careless programs leave them."""
    if (first := os.fork()) == 0:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        _wait(Path(folder))
    os.waitpid(first, 0)
    while not started(Path(folder)):
        time.sleep(0.01)
    return "returned"


def run_one() -> str:
    """A program that ends, as well-behaved functions run them."""
    subprocess.run(["true"], check=True)
    return "it ran"


def use_at_once(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))


def use_together(megabytes: int) -> None:
    """No process too much, all of them together too much."""
    for _ in range(megabytes // 20):
        if os.fork() == 0:
            used = bytearray(20 << 20)
            used[::4096] = b"x" * len(used[::4096])
            time.sleep(FOREVER)
    time.sleep(FOREVER)


def open_files() -> None:
    held = []
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))  # pyright: ignore[reportUnknownMemberType]


def spin() -> None:
    while True:
        pass


async def block() -> None:
    time.sleep(FOREVER)  # noqa: ASYNC251 - that is the accident


def leave_at_once(code: int) -> None:
    os._exit(code)


def crash() -> None:
    ctypes.string_at(0)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_group() -> None:
    os.killpg(0, signal.SIGTERM)


def pause_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def close_all() -> None:
    os.closerange(0, 100)
    time.sleep(FOREVER)


def write_everywhere() -> None:
    for descriptor in range(1, 100):
        try:
            os.write(descriptor, b"garbage" * 10)
        except OSError:
            continue
    time.sleep(FOREVER)


def no_json() -> Any:
    return {"a": object()}


def large(characters: int) -> str:
    return "x" * characters


def late() -> None:
    raise Retryable("come back")


def never() -> None:
    raise Terminal("there is no such thing")


def bug() -> None:
    raise KeyError("key")


def started(folder: Path) -> list[int]:
    """The processes that have written their pid."""
    found = folder / "pids"
    return [int(line) for line in found.read_text().split()] if found.exists() else []


def _wait(folder: Path) -> None:
    with (folder / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    while True:
        time.sleep(FOREVER)
