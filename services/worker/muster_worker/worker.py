"""The worker: pulls a task when it has a free slot, and lets an attempt run it and settle it."""

import asyncio
import logging
import time
from functools import partial
from typing import Any

from muster_agent.limiting.gates import Gates
from muster_bus.background import supervised
from muster_bus.broker.queues import ack_wait_of, task_queue
from muster_bus.buckets.tool_outputs import ToolOutputs
from muster_bus.connection import Bus
from muster_bus.lanes.lane_pull import LanePull
from muster_bus.lease import Delivery
from muster_bus.process.about import work_for
from muster_bus.pull import Pull
from muster_bus.receive import opened
from muster_protocol import subjects
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid
from muster_protocol.messages import Task
from muster_worker.attempt import Resources, RunningAttempt
from muster_worker.control import Control
from muster_worker.events import Events
from muster_worker.executor import Executor
from muster_worker.history import History
from muster_worker.lanes import consumers_of, lanes_of
from muster_worker.registry import LEAVE_SECONDS, Registry
from muster_worker.result import Results
from muster_worker.runners.limiting import TaskLimits
from muster_worker.watchdog import Watchdog

log = logging.getLogger("muster.worker")

TASKS = {Task.kind: Task}
STARTED_AFTER_SECONDS = 0.02  # for a shorter attempt its result is event enough
EVENTS_SECONDS = 0.5  # for events that are not stored yet
NAMES = 3  # attempts that are named where it is not known which one is meant
HAND_BACK_SECONDS = 4.0  # for the attempts that a stop interrupts: a role may clean up, and a note has a second


class Worker:
    """One process of one or more roles, with a number of slots."""

    def __init__(self, bus: Bus, executor: Executor, slots: int) -> None:
        self.bus = bus
        self._executor = executor
        executor.keep_outputs(partial(ToolOutputs, bus))
        self._slots = slots
        self._running: dict[AttemptId, RunningAttempt] = {}
        self._stopping = asyncio.Event()
        self._pull: Pull | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._watchdog = Watchdog(self._named)
        self._events = Events(bus)
        self._control = Control(self._running)
        self._history = History(bus, self._control.is_cancelled)
        self._resources = Resources(bus, executor, self._history, Results(bus), self._events, self._stopping)
        self._gates = Gates(bus, executor.team)
        executor.limits = TaskLimits(self._gates, self._events, bus.clock)
        self._registry = Registry(bus, executor.tags, slots, lambda: len(self._running), executor.cards)

    @property
    def last_turn_at(self) -> float:
        return self._pull.last_turn_at if self._pull is not None else time.monotonic()

    async def start(self) -> None:
        await self.bus.open()
        queue = task_queue(self._executor.tags)
        ack_wait = await ack_wait_of(self.bus, queue)
        lanes = await lanes_of(self.bus, self._executor, self._give_way)
        if lanes is not None:
            queue, ack_wait = lanes.queue, await ack_wait_of(self.bus, lanes.queue)
        await self.bus.watch(subjects.ALL_CONTROL, self._control.on_message)
        self._history.ack_wait = ack_wait
        note = self._events.returned_unread
        if lanes is None:
            self._pull = Pull(self.bus, queue, self._slots, ack_wait, self._take, note)
        else:
            self._pull = LanePull(self.bus, lanes, self._slots, ack_wait, self._take, note)
        for tags, most in self._executor.caps:
            self._pull.cap(consumers_of(queue, tags), most)
        await self._registry.start()
        self.bus.on_reconnect(self._on_reconnect)
        await self._on_reconnect()
        await self._pull.start()
        self._announcing = supervised(self._announce_starts(), "announcing the start of attempts")
        self._watchdog.start()
        log.info("ready: tags %s, %d slots", ", ".join(self._executor.tags), self._slots)

    async def stop(self, grace_seconds: float) -> None:
        """Pull no more, let attempts finish within the grace, and hand the others back, so that none has to expire."""
        if self._pull is None:
            return
        self._stopping.set()
        handlers = await self._pull.close()
        if handlers:
            await asyncio.wait(handlers, timeout=max(0.0, grace_seconds - HAND_BACK_SECONDS - LEAVE_SECONDS))
            for handler in handlers:
                handler.cancel()
            await asyncio.wait(handlers, timeout=HAND_BACK_SECONDS)
        if self._announcing is not None:
            self._announcing.cancel()
        self._watchdog.stop()
        await self._gates.close()
        await self._executor.close()
        await self._registry.stop()
        await self._events.finish(EVENTS_SECONDS)
        await self.bus.flush()
        self._pull.stop()

    async def _take(self, delivery: Delivery) -> None:
        """Handle one delivery of a task; what runs here already only gets the new delivery."""
        try:
            task = await self._open(delivery)
        except asyncio.CancelledError:  # the worker stops before the task could be read
            await self._events.returned_unread(delivery)
            delivery.lease.hand_back()
            raise
        if task is None:
            return
        key = task.attempt_id
        work_for(key)
        known = self._running.get(key)
        if known is not None:
            await known.on_redelivery(delivery)
            return
        self._running[key] = attempt = RunningAttempt(task, delivery, self._resources)
        try:
            await attempt.live()
        finally:
            del self._running[key]

    def _give_way(self, delivery: Delivery) -> bool:
        """Hand the attempt of a low delivery back for a high one; False: it ends anyway, or is not read yet."""
        running = (attempt for attempt in self._running.values() if attempt.delivery.sequence == delivery.sequence)
        return any(attempt.give_way("preempted by high") for attempt in running)

    async def _open(self, delivery: Delivery) -> Task | None:
        """The task in a delivery; one that cannot be read, and was reported, is acked."""
        try:
            return (await opened(self.bus, delivery, TASKS)).body
        except Invalid:
            delivery.lease.ack()
            return None

    async def _announce_starts(self) -> None:
        """Publish `started` for attempts that last: one loop over all of them costs less than a timer for each."""
        while True:
            await asyncio.sleep(STARTED_AFTER_SECONDS)
            self._watchdog.turn()
            latest = time.monotonic() - STARTED_AFTER_SECONDS
            for attempt in list(self._running.values()):
                if attempt.begun_at <= latest:
                    attempt.announce_start()

    def _named(self, handler: asyncio.Task[Any] | None) -> tuple[str, AttemptId | None]:
        """The attempt that a task of the event loop handles; if that is not known, the names of those that run here."""
        running = list(self._running.values())
        found = [attempt for attempt in running if attempt.is_handled_by(handler)] or running
        names = [f"role {self._executor.role_of(one.task.tag)!r} ({one.task.attempt_id})" for one in found[:NAMES]]
        more = f" or {len(found) - NAMES} more" if len(found) > NAMES else ""
        return f"{' or '.join(names)}{more}" or "its own work", found[0].task.attempt_id if len(found) == 1 else None

    async def _on_reconnect(self) -> None:
        """A check may have been missed: say again what runs here."""
        self._history.connected_at = self.bus.clock.now()
        for attempt in list(self._running.values()):
            attempt.answer_check()
