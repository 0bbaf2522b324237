"""The worker: takes tasks when it has a free slot, runs the role, appends the result, and only then acks."""

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from muster_bus import telemetry
from muster_bus.background import supervised
from muster_bus.connection import Bus, Incoming
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_bus.reports import Source
from muster_bus.topology import ack_wait_of, worker_consumer
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid, Retryable
from muster_protocol.headers import Sender
from muster_protocol.messages import CONTROL_KINDS, Abort, Cancel, Failure, Result, ResultStatus, Task
from muster_worker.events import Events
from muster_worker.executor import Executor, Outcome, too_large
from muster_worker.history import is_done_already, is_poison, is_suspect
from muster_worker.registry import LEAVE_SECONDS, Registry

log = logging.getLogger("muster.worker")

STARTED_AFTER_SECONDS = 0.02  # a shorter task is told by its result alone
REMEMBERED_CANCELS = 10_000
HAND_BACK_SECONDS = 4.0  # for what a stop interrupts: a role may clean up, and the note has a second to be stored
AGAIN_SECONDS = 0.5  # until a large result is tried again that the object store did not take

MAY_ABORT = ("supervisor/", "coordinator/")

Key = tuple[str, str, int]


class RunningAttempt:
    """One attempt that runs here."""

    __slots__ = ("delivery", "is_aborted", "runner", "start_announced", "taken_at", "task")

    def __init__(self, task: Task, delivery: Delivery, runner: "asyncio.Task[None]") -> None:
        self.task, self.delivery, self.runner = task, delivery, runner
        self.is_aborted = False
        self.start_announced = True  # nothing to tell before it has begun
        self.taken_at = time.monotonic()

    def begin(self) -> None:
        """It was not done yet, so it is done here."""
        self.start_announced = False
        self.taken_at = time.monotonic()


class Worker:
    """One process of one or more roles, with a number of slots."""

    def __init__(self, bus: Bus, executor: Executor, slots: int) -> None:
        self.bus = bus
        self._executor = executor
        self._slots = slots
        self._running: dict[Key, RunningAttempt] = {}
        self._cancelled: OrderedDict[str, None] = OrderedDict()
        self._pull: Pull | None = None
        self._is_stopping = False
        self._ack_wait = math.inf
        self._connected_at = 0.0  # broker time
        self._telling: asyncio.Task[None] | None = None
        self._events = Events(bus)
        self._registry = Registry(bus, executor.tags, slots, lambda: len(self._running))

    @property
    def last_turn_at(self) -> float:
        return self._pull.last_turn_at if self._pull is not None else time.monotonic()

    async def start(self) -> None:
        consumers = [worker_consumer(tag) for tag in self._executor.tags]
        ack_waits = [await ack_wait_of(self.bus, "TASKS", consumer) for consumer in consumers]
        await self.bus.subscribe(subjects.ALL_CONTROL, self._on_control)
        self._ack_wait = min(ack_waits)
        note = self._events.returned_unread
        self._pull = Pull(self.bus, "TASKS", consumers, self._slots, self._ack_wait, self._take, note)
        await self._registry.start()
        self.bus.on_reconnect(self._on_reconnect)
        await self._on_reconnect()
        await self._pull.start()
        self._telling = supervised(self._tell_starts(), "the telling of starts")
        log.info("ready: tags %s, %d slots", ", ".join(self._executor.tags), self._slots)

    async def stop(self, grace_seconds: float) -> None:
        """Close the pulls, let what runs finish, hand the rest back: nothing waits for an ack timeout."""
        if self._pull is None:
            return
        self._is_stopping = True
        handlers = await self._pull.close()
        if handlers:
            await asyncio.wait(handlers, timeout=max(0.0, grace_seconds - HAND_BACK_SECONDS - LEAVE_SECONDS))
            for handler in handlers:
                handler.cancel()
            await asyncio.wait(handlers, timeout=HAND_BACK_SECONDS)
        if self._telling is not None:
            self._telling.cancel()
        await self._registry.stop()
        await self.bus.flush()
        self._pull.stop()

    async def _take(self, delivery: Delivery) -> None:
        try:
            task = await self._read(delivery)
        except asyncio.CancelledError:
            await self._events.returned_unread(delivery)  # stopped before it was known what it is
            delivery.lease.hand_back()
            raise
        if task is None:
            return
        key = (task.request_id, task.task_id, task.attempt)
        known = self._running.get(key)
        if known is not None:
            await _handle_duplicate(known, delivery)
            return
        running = self._running[key] = RunningAttempt(task, delivery, _current_task())
        try:
            if await self._is_settled(task, delivery):
                running.delivery.lease.ack()
                return
            running.begin()
            await self._work(running)
        except asyncio.CancelledError:
            await self._give_up(running)
        except Exception:
            running.delivery.lease.drop()  # also when it is a newer handle than the one that came with this call
            raise
        finally:
            if self._running.get(key) is running:
                del self._running[key]

    async def _read(self, delivery: Delivery) -> Task | None:
        try:
            h.require_sender(delivery.headers)
            h.require_kind(delivery.headers, {Task.kind: Task})
            return Task.read(await self.bus.body_of(delivery.headers, delivery.data))
        except Invalid as reason:
            source = Source.of(delivery)
            await self.bus.report(str(reason), source, request_id=(delivery.headers or {}).get(h.REQUEST_ID))
            delivery.lease.ack()
            return None

    async def _is_settled(self, task: Task, delivery: Delivery) -> bool:
        """Cancelled, expired, poison, or done already by somebody else: nothing to work on."""
        now = self.bus.clock.now()
        if task.request_id in self._cancelled or now >= task.deadline:
            return True
        has_doubt = is_suspect(task, delivery.number, now, self._connected_at, self._ack_wait)
        if has_doubt and await is_done_already(self.bus, task):
            return True
        if await is_poison(self.bus, task, delivery.number):
            failure = Failure.model_validate(
                {"class": "poison", "message": f"taken {delivery.number - 1} times without a result", "is_final": True}
            )
            outcome = Outcome(ResultStatus.FAILED, "", error=failure)
            await self._append(task, delivery, outcome, 0.0)
            source = Source.of(delivery)
            await self.bus.report(f"task {task.message_id}: {failure.message}", source, request_id=task.request_id)
            return True
        return False

    async def _work(self, running: RunningAttempt) -> None:
        task, delivery = running.task, running.delivery
        carrier = delivery.headers or {}
        if not telemetry.is_sampled(carrier):
            await self._run(running)
            return
        attributes = telemetry.attributes_of("process", delivery.subject, "tasks.{tag}", task.request_id)
        with telemetry.span(
            "process tasks.{tag}",
            telemetry.SpanKind.CONSUMER,
            {**attributes, "messaging.nats.delivery_count": delivery.number, "muster.attempt": task.attempt},
            carrier=carrier,
            root=task.request_id,
        ) as span:
            outcome = await self._run(running)
            if outcome.error is not None:
                telemetry.failed(span, outcome.error.message)

    async def _run(self, running: RunningAttempt) -> Outcome:
        """Run the role, store its result, and only then ack."""
        task = running.task
        began = time.monotonic()
        outcome = await self._executor.run(task, self._events.context(task))
        seconds = time.monotonic() - began
        running.start_announced = True
        try:
            await self._append(task, running.delivery, outcome, seconds)
        except Invalid as reason:
            outcome = too_large(outcome, str(reason))
            await self._append(task, running.delivery, outcome, seconds)
        running.delivery.lease.ack()
        log.info("✓ result  %s  %s  %.2f s", _named(task), outcome.status, seconds)
        return outcome

    async def _tell_starts(self) -> None:
        """Say `started` for what runs longer than a moment: one look at all that runs instead of a timer for each."""
        while True:
            await asyncio.sleep(STARTED_AFTER_SECONDS)
            latest = time.monotonic() - STARTED_AFTER_SECONDS
            for running in list(self._running.values()):
                if not running.start_announced and running.taken_at <= latest:
                    running.start_announced = True
                    self._say_started(running)

    async def _append(self, task: Task, delivery: Delivery, outcome: Outcome, seconds: float) -> None:
        """Kept and tried again until it is stored; the lease is kept meanwhile."""
        result = Result(
            request_id=task.request_id,
            task_id=task.task_id,
            attempt=task.attempt,
            status=outcome.status,
            output=outcome.output,
            error=outcome.error,
            worker=self.bus.sender.instance,
            role=outcome.role,
            delivery=delivery.number,
            usage=outcome.usage,
            seconds=round(seconds, 4),
            tool_calls=outcome.tool_calls,
        )
        sender = Sender("worker", self.bus.sender.instance, outcome.role)
        subject, request_id = subjects.results(task.request_id), task.request_id
        while True:
            try:
                await self.bus.store(
                    subject,
                    result,
                    request_id=request_id,
                    message_id=result.message_id,
                    carrier=delivery.headers,
                    sender=sender,
                )
            except Retryable as reason:
                log.warning("… result  %s  not stored yet: %s", _named(task), reason)
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _give_up(self, running: RunningAttempt) -> None:
        """Stopped by an abort: settle it. Stopped with the worker: hand it back and say so. By its own role: failed."""
        task, delivery = running.task, running.delivery
        if running.is_aborted:
            delivery.lease.ack()
            log.info("■ task    %s  stopped", _named(task))
        elif self._is_stopping:
            await self._events.handed_back(delivery, task.message_id)
            delivery.lease.hand_back()
            log.info("← task    %s  handed back", _named(task))
        else:  # handed back, it would come again at once, and for ever
            failure = Failure.model_validate({"class": "logic", "message": "the role cancelled its own task"})
            role = self._executor.role_of(task.tag)
            try:
                await self._append(task, delivery, Outcome(ResultStatus.FAILED, role, error=failure), 0.0)
            except asyncio.CancelledError:  # aborted or stopped meanwhile
                await self._give_up(running)
                return
            running.delivery.lease.ack()

    def _say_started(self, running: RunningAttempt) -> None:
        task = running.task
        log.info("→ task    %s", _named(task))
        self._events.started(task, running.delivery, self._executor.role_of(task.tag))

    async def _on_reconnect(self) -> None:
        self._connected_at = self.bus.clock.now()

    def _on_control(self, message: Incoming) -> None:
        try:
            sender = h.require_sender(message.headers)
            control = h.require_kind(message.headers, CONTROL_KINDS).read(message.data)
        except Invalid as reason:
            log.debug("a control message that cannot be used: %s", reason)
            return
        if control.request_id != subjects.last_token(message.subject):
            return  # the broker lets one speak on a subject; what the body claims is not checked there
        if isinstance(control, Cancel) or not sender.startswith(MAY_ABORT):
            return  # a wish, which may not even be stored: the owner decides upon it in the log, and says abort
        match control:
            case Abort(attempts=()):
                self._abort(lambda key: key[0] == control.request_id)
                self._remember(control.request_id)
            case Abort():
                named: set[Key] = {(control.request_id, *attempt) for attempt in control.attempts}
                self._abort(lambda key: key in named)

    def _remember(self, request_id: str) -> None:
        self._cancelled[request_id] = None
        if len(self._cancelled) > REMEMBERED_CANCELS:
            self._cancelled.popitem(last=False)

    def _abort(self, is_meant: Callable[[Key], bool]) -> None:
        for key, running in list(self._running.items()):
            if is_meant(key):
                running.is_aborted = True
                running.runner.cancel()


async def _handle_duplicate(running: RunningAttempt, delivery: Delivery) -> None:
    """What runs here came once more: delivered again, or stored a second time."""
    if running.delivery.sequence == delivery.sequence:
        running.delivery.lease.drop()
        running.delivery = delivery  # only the handle is new
    else:
        delivery.lease.ack()  # a second copy: the first one is the lease


def _named(task: Task) -> str:
    """An attempt as log lines name it."""
    return f"{task.request_id}/{task.task_id}  attempt {task.attempt}"


def _current_task() -> "asyncio.Task[None]":
    task = asyncio.current_task()
    assert task is not None
    return task
