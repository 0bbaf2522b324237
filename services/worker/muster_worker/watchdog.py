"""Says which attempt blocks the worker's event loop, from a thread: the loop itself cannot say it while it is blocked.

A call that also holds the interpreter's lock keeps the thread from running; then the loop says it when it turns again.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from muster_bus.process.about import fields_of
from muster_protocol.attempt_id import AttemptId
from muster_protocol.status import place_of

log = logging.getLogger("muster.worker")

WARN_SECONDS = 3.0  # the loop turns every 20 ms; a busy machine may keep it waiting for a second
LOOK_SECONDS = 0.5  # the thread's only cost: two short turns in a second
WAY_OUT = "await what takes long, or make the function a plain `def`, which gets a thread of its own"
FRAMES = "_current_frames"  # documented for use by everybody, though its name looks private

Running = Callable[[asyncio.Task[Any] | None], tuple[str, AttemptId | None]]


class Watchdog:
    """Watches one event loop. `running` names what a task of the loop runs, or all that may be running here."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._last_turn_at = time.monotonic()
        self._is_reported = False
        self._stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def turn(self) -> None:
        """The loop turns: called by the loop itself, many times in a second."""
        now = time.monotonic()
        still = now - self._last_turn_at
        self._last_turn_at = now
        if self._is_reported:
            self._is_reported = False
            log.warning("… worker  goes on after it was blocked for %.0f s", still)
        elif still >= WARN_SECONDS:
            cause = f"the process was paused, or {self._running(None)[0]} blocked it; {WAY_OUT}"
            log.warning("… worker  stood still for %.0f s: %s", still, cause)

    def _watch(self) -> None:
        due = WARN_SECONDS
        while not self._stopped.wait(LOOK_SECONDS):
            still = time.monotonic() - self._last_turn_at
            if still < WARN_SECONDS:
                due = WARN_SECONDS
            elif still >= due:
                due = 2 * still
                self._report(still)

    def _report(self, still: float) -> None:
        self._is_reported = True
        frames: dict[int, FrameType] = getattr(sys, FRAMES)()
        place = place_of("".join(traceback.format_stack(frames.get(self._loop_thread))))
        who, attempt = self._running(asyncio.current_task(self._loop))
        effect = f"nothing else runs here meanwhile; {WAY_OUT}"
        text = "… worker  %s has blocked this worker for %.0f s%s: %s"
        log.warning(text, who, still, place, effect, extra=fields_of(attempt))
