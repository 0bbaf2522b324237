"""A process that runs functions, as its worker sees it; its keeper ends it with all that came of it."""

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from muster_agent.isolation import keeper
from muster_agent.isolation.endings import READ, Ending, error_of
from muster_agent.isolation.environment import environment_for
from muster_agent.isolation.errors import Cut, TookTooLong, UsedTooMuch
from muster_agent.isolation.frames import Garbage, read_frame
from muster_agent.isolation.messages import (
    Notes,
    Progressed,
    Raised,
    Ready,
    Returned,
    Run,
    Used,
    frame,
    told_to_worker,
)
from muster_agent.isolation.prints import Prints
from muster_bus.background import repeated

log = logging.getLogger("muster.worker")

LOOK_SECONDS = 0.25  # a call that lasts so long is looked at: its memory, and what people said meanwhile
START_SECONDS = 30.0  # until a new process takes calls: a fifth of a second on a quiet machine
REPORT_SECONDS = 0.5  # for the keeper to learn of an end that the worker saw first
END_SECONDS = keeper.SWEEP_SECONDS + 2.0
REAP_SECONDS = 0.002
_UNREADABLE = (asyncio.IncompleteReadError, ConnectionError, Garbage)


@dataclass(frozen=True, slots=True)
class Kind:
    """Calls of one kind may use the same processes, one after the other."""

    role: str
    memory_mb: int
    env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a function may say before its output is there, and what people say meanwhile."""

    progress: Callable[[str], None]
    tool_used: Callable[[str, float, str | None, str | None], None]
    notes: Sequence[str] = ()


class Process:
    """For one call at a time. Whoever makes it sees to it that it is killed."""

    def __init__(self, kind: Kind, environment: Mapping[str, str]) -> None:
        self.kind = kind
        self.count = 0  # of calls
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._ending = Ending()
        self._heard = b""
        self._left: asyncio.Future[int] | None = None
        self._prints: list[Prints] = []
        with ExitStack() as theirs, ExitStack() as ours:
            self._control, control = _pair(ours, theirs)
            self._calls, calls = _pair(ours, theirs)
            ends: list[int] = []
            for name in ("stdout", "stderr"):
                start, end = os.pipe()
                ends.append(end)
                theirs.callback(os.close, end)
                self._prints.append(Prints(start, name))
                ours.callback(self._prints[-1].close)
            self._keeper = _keeper(kind, environment, (control, calls), ends)
            ours.pop_all()  # from now on they end with the keeper
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._on_control)

    async def ready(self) -> None:
        """Wait until it takes calls."""
        try:
            async with asyncio.timeout(START_SECONDS):
                self._reader, self._writer = await asyncio.open_connection(sock=self._calls)
                if not isinstance(told_to_worker(await read_frame(self._reader)), Ready):
                    raise Garbage("it is not ready")
        except TimeoutError:
            raise TookTooLong(f"its process was not ready within {START_SECONDS:g} s; is the machine busy?") from None
        except _UNREADABLE:
            raise await self._lost(START_SECONDS) from None

    async def call(self, run: Run, told: Told) -> Returned | Raised:
        """Let it call a function; an error of its own if the process does not come to an end of it."""
        self.count += 1
        for prints in self._prints:
            prints.begin()
        look = _Look(self, told.notes)
        try:
            self._writer.write(frame(run))
            with repeated(look.look, LOOK_SECONDS, LOOK_SECONDS):
                await self._writer.drain()
                return await self._answer(told)
        except _UNREADABLE:
            lost = await self._lost(run.seconds)
            lost.was_called = True
            raise lost from None
        finally:
            look.end()
            for prints in self._prints:
                prints.end()

    async def left(self) -> int:
        """How many processes run beside it that it has started."""
        self._left = self._loop.create_future()
        self.tell_keeper(b"?")
        try:
            async with asyncio.timeout(END_SECONDS):
                return await self._left
        except TimeoutError:
            return 1

    def say(self, message: Notes) -> None:
        self._writer.write(frame(message))

    def tell_keeper(self, word: bytes) -> None:
        with suppress(OSError):  # it is gone, and says so elsewhere
            self._control.send(word)

    def kill(self) -> None:
        """End it and all that came of it; `gone` says when that is done."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    async def ended(self) -> Ending:
        """Kill it and wait until it is gone, with how it ended."""
        self.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await asyncio.shield(self.gone)
        return self._ending

    async def _answer(self, told: Told) -> Returned | Raised:
        while True:
            match told_to_worker(await read_frame(self._reader)):
                case Progressed(text=text):
                    told.progress(text)
                case Used() as used:
                    told.tool_used(used.tool, used.seconds, used.error, used.error_class)
                case Ready():
                    raise Garbage("it is ready a second time")
                case Returned() | Raised() as ending:
                    return ending

    async def _lost(self, seconds: float) -> Cut:
        """Why it says no more. The keeper learns of its end a little later, and would not if it were told to end it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REPORT_SECONDS):
                await asyncio.shield(self.gone)
        return error_of(await self.ended(), self.kind.memory_mb, seconds)

    def _on_control(self) -> None:
        """The keeper says something; its end is the end of all."""
        try:
            found = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            found = b""
        *lines, self._heard = (self._heard + found).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "left" not in said:
                self._ending = READ.validate_python(said)
            elif self._left is not None and not self._left.done():
                self._left.set_result(said["left"])
        if not found:
            self._loop.remove_reader(self._control)
            self._reap(self._loop.time() + END_SECONDS)

    def _reap(self, give_up_at: float) -> None:
        """Bury the keeper, which ends when it has closed its connection."""
        if self._keeper.poll() is None:
            if self._loop.time() > give_up_at:
                self._keeper.kill()
            self._loop.call_later(REAP_SECONDS, self._reap, give_up_at)
            return
        self._control.close()
        if hasattr(self, "_writer"):
            self._writer.close()
        else:
            self._calls.close()
        for prints in self._prints:
            prints.close()
        if self._left is not None and not self._left.done():
            self._left.set_result(1)
        if not self.gone.done():
            self.gone.set_result(None)


def _pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, socket.socket]:
    own, other = socket.socketpair()
    return ours.enter_context(own), theirs.enter_context(other)


def _keeper(
    kind: Kind, environment: Mapping[str, str], sockets: tuple[socket.socket, socket.socket], prints: Sequence[int]
) -> "subprocess.Popen[bytes]":
    """A keeper that has just been started, and knows its worker by its id."""
    control, calls = (each.fileno() for each in sockets)
    said = {"worker": os.getpid(), "control": control, "calls": calls, "memory_mb": kind.memory_mb, "path": sys.path}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, json.dumps(said)],
        stdin=subprocess.DEVNULL,
        stdout=prints[0],
        stderr=prints[1],
        pass_fds=(control, calls),
        env=environment_for(kind.env, environment),
        start_new_session=True,  # Ctrl-C is for the worker
    )


class _Look:
    """What is done again and again while a call lasts."""

    def __init__(self, process: Process, notes: Sequence[str]) -> None:
        self._process, self._notes = process, notes
        self._told = len(notes)
        self._is_on = False

    def look(self) -> None:
        if not self._is_on:
            self._is_on = True
            self._process.tell_keeper(b"+")
        if len(self._notes) > self._told:
            new = tuple(self._notes[self._told :])
            self._told += len(new)
            self._process.say(Notes(texts=new))

    def end(self) -> None:
        if self._is_on:
            self._process.tell_keeper(b"-")


def started(kind: Kind, environment: Mapping[str, str]) -> Process:
    try:
        return Process(kind, environment)
    except OSError as error:
        raise UsedTooMuch(f"there is no room for its process: {error}; end others, or raise the limits") from error
