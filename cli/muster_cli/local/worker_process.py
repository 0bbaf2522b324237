"""The worker of `muster up` in a process of its own: a role that blocks or crashes takes nothing else with it."""

import asyncio
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from contextlib import suppress

from muster_bus.background import supervised
from muster_bus.broker.embedded import die_with_parent
from muster_bus.buckets.workers import registry
from muster_bus.connection import Bus
from muster_bus.process.command import Exit
from muster_protocol.errors import MusterError

log = logging.getLogger("muster.up")

LOOK_SECONDS = 0.05  # between two looks for the card of a worker that starts
FIRST_PAUSE_SECONDS = 0.5  # before a worker that died is started again; doubled while it dies soon …
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0  # … and short again for one that has lived this long
KILL_SECONDS = 1.0  # of the grace time, for a worker that did not use the rest of it to stop


class EndedAtStart(Exception):
    """The worker ended before it was ready, and has said why on the same terminal."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the worker ended at its start: {ending_of(code)}")
        self.code = code if code > 0 else int(Exit.FAILED)


class WorkerProcess:
    """A child that runs `muster worker`, is started again when it dies, and dies with this process."""

    def __init__(self, name: str, arguments: Sequence[str], url: str, grace_seconds: float) -> None:
        self._first_name = self.name = name
        self._arguments = tuple(arguments)
        self._grace_seconds = grace_seconds
        self._environment = {
            **os.environ,
            "MUSTER_NATS_URL": url,
            "MUSTER_HEALTH_PORT": "",  # it is the parent's
            "MUSTER_GRACE_SECONDS": f"{max(0.0, grace_seconds - 2 * KILL_SECONDS):g}",
            "PYTHONUNBUFFERED": "1",  # what a role prints is seen when it prints it
        }
        self._starts = 0
        self._started_at = 0.0
        self._process: Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def launch(self) -> None:
        """Start it without waiting; each start has a name of its own, since the log tells workers apart by it."""
        self._starts += 1
        self.name = self._first_name if self._starts == 1 else f"{self._first_name}-{self._starts}"
        self._started_at = time.monotonic()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "muster_cli", "worker", "--name", self.name, *self._arguments),
            stdin=DEVNULL,
            stdout=sys.stderr.fileno(),  # beside the logs: standard output is for the parent's welcome
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for the parent, which stops everything in order
            preexec_fn=die_with_parent(),
        )

    async def ready(self, bus: Bus) -> None:
        """Wait until the worker is registered, and start it again from now on when it dies."""
        assert self._process is not None
        while await registry(bus).get(self.name) is None:
            if self._process.returncode is not None:
                raise EndedAtStart(self._process.returncode)
            await asyncio.sleep(LOOK_SECONDS)
        self._keeping = supervised(self._keep(bus), "restarting the worker")

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL at the end of the grace time."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])  # it may be about to start another
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGCONT)  # a paused process would not get SIGTERM
        self._process.terminate()
        try:
            async with asyncio.timeout(max(0.0, self._grace_seconds - KILL_SECONDS)):
                await self._process.wait()
        except TimeoutError:
            log.warning("worker-%s did not stop in time and was killed; its tasks are given out again", self.name)
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _keep(self, bus: Bus) -> None:
        """Start another whenever it dies; the broker gives its tasks out again."""
        pause = FIRST_PAUSE_SECONDS / 2
        while True:
            assert self._process is not None
            code = await self._process.wait()
            lived = time.monotonic() - self._started_at
            pause = next_pause(pause, lived)
            log.error("worker-%s is gone (%s); starting another in %g s", self.name, ending_of(code), pause)
            with suppress(MusterError):  # otherwise its card is forgotten a little later
                await registry(bus).delete(self.name)
            await asyncio.sleep(pause)
            await self.launch()


def next_pause(last: float, lived_seconds: float) -> float:
    """How long to wait before a worker that died is started again: longer each time it dies soon."""
    return FIRST_PAUSE_SECONDS if lived_seconds >= STEADY_SECONDS else min(2 * last, LONGEST_PAUSE_SECONDS)


def ending_of(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
