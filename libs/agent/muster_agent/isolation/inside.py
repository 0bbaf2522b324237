"""Runs functions, one at a time, in the process that a keeper keeps for them."""

import asyncio
import gc
import json
import math
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from muster_agent.functions import Context, call, load_function, load_handler
from muster_agent.isolation.frames import read_frame
from muster_agent.isolation.messages import (
    Ending,
    Notes,
    Progressed,
    Ready,
    RoleRun,
    Run,
    ToolRun,
    Used,
    frame,
    told_to_process,
)
from muster_agent.isolation.report import encodable, raised_by, returned
from muster_agent.spawning import Spawning
from muster_agent.tools.tool import KEYED, Tool, tool_of
from muster_protocol.errors import Retryable
from muster_protocol.messages import Task
from muster_protocol.plan import Frozen


def serve(calls: int, memory_mb: int) -> None:
    """Do what the worker says on this descriptor, until it says no more."""
    for stream in (sys.stdout, sys.stderr):
        cast("Any", stream).reconfigure(line_buffering=True, errors="backslashreplace")
    asyncio.run(_serve(socket.socket(fileno=calls), memory_mb))


async def _serve(connection: socket.socket, memory_mb: int) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    inside = Inside(writer, memory_mb)
    gc.freeze()  # what is there by now stays: it need not be looked at again and again
    inside.say(Ready())
    running = set[asyncio.Task[None]]()
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            match told_to_process(await read_frame(reader)):
                case Notes(texts=texts):
                    inside.notes += texts
                case run:
                    running = {asyncio.create_task(inside.run(run))}
    del running
    os._exit(0)  # the worker is gone, or has no use for this one: threads that hang must not keep it


@dataclass(slots=True)
class Inside:
    """The process as its functions see it."""

    writer: asyncio.StreamWriter
    memory_mb: int
    notes: list[str] = field(default_factory=list[str])
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    handlers: dict[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])

    def say(self, message: Frozen) -> None:
        self.writer.write(frame(message))

    async def run(self, run: Run) -> None:
        """Call the function, and say what came of it."""
        _limit_processor(run.seconds)
        before = _processes_seen()
        ending: Ending
        try:
            match run:
                case ToolRun():
                    output, tasks = await self._tool(run), "[]"
                case RoleRun():
                    output, tasks = await self._role(run)
            ending = returned(output, tasks, has_started=_has_started(before))
        except asyncio.CancelledError:
            text = "the role was cancelled by something that it cancelled itself"
            ending = raised_by(Retryable(text), self.memory_mb, has_started=_has_started(before))
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the worker's to hear
            with suppress(OSError, ValueError):  # room to say so
                most = resource.getrlimit(resource.RLIMIT_DATA)[1]
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            ending = raised_by(error, self.memory_mb, has_started=_has_started(before))
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # closed by the function
                cast("TextIO", stream).flush()
        self.say(ending)

    async def _tool(self, run: ToolRun) -> str:
        tool = self.tools.get(run.function)
        if tool is None:
            effect = None if run.key is None else KEYED
            tool = self.tools[run.function] = tool_of(load_function(run.function, run.folder), effect=effect)
        return await tool.call(json.loads(run.arguments), key=run.key or "")

    async def _role(self, run: RoleRun) -> tuple[Any, str]:
        handler = self.handlers.get(run.function)
        if handler is None:
            handler = self.handlers[run.function] = load_handler(run.function, run.folder)
        task = Task.read(run.task.encode())
        self.notes = list(run.notes)
        spawning = Spawning(task, run.role, is_allowed=run.spawns)
        output = await call(handler, task, self._context(run, spawning))
        added = [spec.model_dump(mode="json", exclude_unset=True) for spec in spawning.added()]
        return output, json.dumps(added)

    def _soon(self) -> Callable[[Frozen], None]:
        """`say` for whoever: the function runs in the event loop, or in a thread of its own."""
        loop, own = asyncio.get_running_loop(), threading.get_ident()

        def soon(message: Frozen) -> None:
            if threading.get_ident() == own:
                self.say(message)
            else:
                loop.call_soon_threadsafe(self.say, message)

        return soon

    def _context(self, run: RoleRun, spawning: Spawning) -> Context:
        say = self._soon()

        def progress(text: str) -> None:
            say(Progressed(text=encodable(text)))

        def tool_used(tool: str, seconds: float, error: str | None, error_class: str | None = None) -> None:
            text = None if error is None else encodable(error)
            say(Used(tool=encodable(tool), seconds=seconds, error=text, error_class=error_class))

        return Context(json.loads(run.outputs), progress, tool_used, self.notes, spawning)


def _limit_processor(seconds: float) -> None:
    """Processor time for one call: a process that spins is ended by the kernel, whatever becomes of the worker."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    hardest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hardest == resource.RLIM_INFINITY or limit < hardest:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, hardest))


def _processes_seen() -> int:
    """A number that changes when a process that this one started is waited for."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def _has_started(before: int) -> bool:
    """Whether processes were started: some still run, or they were waited for and may have left others."""
    if sys.platform == "darwin":  # there nothing but the group could be ended anyway
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return _processes_seen() != before
    return True
