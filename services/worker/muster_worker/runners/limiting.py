"""The models of an attempt, asked when the limits of their providers allow it; a wait that lasts is told to people."""

import logging
import math

from muster_agent.budget import Meter
from muster_agent.limiting.gates import Gates
from muster_agent.limiting.waiter import Caller, Waiting
from muster_agent.models.port import Model
from muster_bus.clock import BrokerClock
from muster_protocol.messages import Task
from muster_worker.events import Events
from muster_worker.result import log_name

log = logging.getLogger("muster.worker")

TELL_SECONDS = 0.5  # a shorter wait is over before anybody has read of it
CHANGED_SECONDS = 2.0  # what differs by less is not told again


class TaskLimits:
    """What attempts of one worker pass before they ask a model."""

    def __init__(self, gates: Gates, events: Events, clock: BrokerClock) -> None:
        self._gates = gates
        self._events = events
        self._clock = clock

    def limited(self, model: Model, task: Task, meter: Meter) -> Model:
        """The model, for this attempt."""
        if not model.provider:
            return model
        teller = _Teller(task, self._events, self._clock)
        deadline = math.inf if task.work_ends is None else task.work_ends  # another attempt may come after this one
        caller = Caller(task.reserved_at + task.timeout_seconds, deadline, meter, teller.tell)
        return self._gates.limited(model, caller)


class _Teller:
    """Says of one attempt that it waits, and that it goes on."""

    def __init__(self, task: Task, events: Events, clock: BrokerClock) -> None:
        self._task, self._events, self._clock = task, events, clock
        self._since: float | None = None
        self._told: Waiting | None = None

    def tell(self, waiting: Waiting | None) -> None:
        now = self._clock.now()
        if waiting is None:
            if self._told is not None:
                self._events.waiting(self._task, f"goes on after a wait of {now - (self._since or now):.0f} s")
            self._since = self._told = None
            return
        self._since = now if self._since is None else self._since
        if self._is_news(waiting, now):
            log.info("… task    %s  %s", log_name(self._task), waiting.text(now))
            self._events.waiting(self._task, waiting.text(now), waiting.what, waiting.until or 0.0)
            self._told = waiting

    def _is_news(self, waiting: Waiting, now: float) -> bool:
        if self._told is None:  # one that depends on others is told when it has lasted
            begun = self._since or now
            return (waiting.until or begun + TELL_SECONDS) - now >= TELL_SECONDS or now - begun >= TELL_SECONDS
        moved = abs((waiting.until or 0.0) - (self._told.until or 0.0))
        return waiting.what != self._told.what or moved > CHANGED_SECONDS
