"""The processes of one worker that run functions: as many as it has slots, started when they are needed, kept warm."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from muster_agent.isolation.endings import processes, with_others
from muster_agent.isolation.errors import TookTooLong, error_of
from muster_agent.isolation.messages import Raised, Returned, Run
from muster_agent.isolation.process import Kind, Process, Told, started
from muster_bus.background import supervised

log = logging.getLogger("muster.worker")

CALLS_EACH = 1000  # then another takes over: what leaks in strange code must not grow without end
IDLE_SECONDS = 300.0  # a process that nobody needed for so long gives its memory back


class Pool:
    """Calls functions in processes of their own, one call in each at a time."""

    def __init__(self, most: int, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._room = asyncio.Semaphore(most)
        self._most = most
        self._busy = 0
        self._idle: dict[Process, asyncio.TimerHandle] = {}  # the one that was used last comes last
        self._settling = set[asyncio.Task[None]]()
        self._is_closed = False

    @property
    def idle(self) -> int:
        """How many processes wait for a call."""
        return len(self._idle)

    async def call(self, kind: Kind, run: Run, told: Told, limit: float | None) -> Returned:
        """What a function returned. Its process is used again if nothing is wrong with it, else it is ended."""
        async with self._room:
            process = self._taken(kind)
            self._busy += 1
            ending = None
            try:
                if process.count == 0:
                    await process.ready()
                async with asyncio.timeout(limit):
                    ending = await process.call(run, told)
            except TimeoutError:
                ended = await process.ended()
                others = with_others(ended.others)
                words = "make it faster, or raise timeout_seconds"
                late = TookTooLong(f"the function gave no output within {limit:g} s and was ended{others}; {words}")
                late.was_called = True
                raise late from None
            finally:
                self._busy -= 1
                self._settle(process, ending)
        if isinstance(ending, Raised):
            raise error_of(ending)
        assert ending is not None  # or the process was lost, which has raised
        return ending

    async def close(self) -> None:
        """End all of them, also what runs; returns when they are gone, or hang."""
        self._is_closed = True
        for process in list(self._idle):
            self._end(process)
        while self._settling:
            await asyncio.wait(set(self._settling))

    def _taken(self, kind: Kind) -> Process:
        """An idle process of this kind, or a new one; then one of another kind may have to go."""
        for process in reversed(list(self._idle)):
            if process.gone.done():  # it ended while nobody needed it
                self._idle.pop(process).cancel()
            elif process.kind == kind:
                self._idle.pop(process).cancel()
                return process
        if len(self._idle) + self._busy >= self._most:
            self._end(next(iter(self._idle)))
        return started(kind, self._environment)

    def _settle(self, process: Process, ending: Returned | Raised | None) -> None:
        """Keep a process that is well; one that may have left others running is asked first."""
        is_out = isinstance(ending, Raised) and ending.is_out_of_memory
        if ending is None or is_out or self._is_closed or process.gone.done() or process.count >= CALLS_EACH:
            self._end(process)
        elif ending.has_started:
            self._own(self._keep_if_alone(process), "looking for processes that a function left")
        else:
            self._keep(process)

    async def _keep_if_alone(self, process: Process) -> None:
        left = await process.left()
        if left:
            log.warning("… role    %s  a function left %s running, to be ended", process.kind.role, processes(left))
        if left or self._is_closed or len(self._idle) + self._busy >= self._most:
            await process.ended()
        else:
            self._keep(process)

    def _keep(self, process: Process) -> None:
        loop = asyncio.get_running_loop()
        self._idle[process] = loop.call_later(IDLE_SECONDS, self._end, process)

    def _end(self, process: Process) -> None:
        if (timer := self._idle.pop(process, None)) is not None:
            timer.cancel()
        process.kill()
        self._own(_until_gone(process), "ending an isolated process")

    def _own(self, settling: Coroutine[Any, Any, None], what: str) -> None:
        task = supervised(settling, what)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)


async def _until_gone(process: Process) -> None:
    await process.ended()


def output_of(returned: Returned) -> Any:
    """The output behind its JSON."""
    return json.loads(returned.output)
