"""The worker: takes tasks when it has a free slot, runs the role, appends the result, and only then acks."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from muster_bus import telemetry
from muster_bus.connection import Bus, Heard, Source
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_bus.topology import lease_of, worker_consumer
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid, Retryable
from muster_protocol.headers import Sender
from muster_protocol.messages import CONTROL_KINDS, Abort, Cancel, Failure, Result, ResultStatus, Task
from muster_worker.events import Events
from muster_worker.executor import Executor, Outcome, too_large
from muster_worker.history import is_done_already, is_poison
from muster_worker.registry import Registry

log = logging.getLogger("muster.worker")

STARTED_AFTER_SECONDS = 0.02  # a shorter task is told by its result alone
FRESH_SECONDS = 3.0  # a task that comes later than this after its reservation may be a second copy …
REMEMBERED_CANCELS = 10_000
AGAIN_SECONDS = 0.5  # until a large result is tried again that the object store did not take

Key = tuple[str, str, int]


class Job:
    """One attempt that runs here."""

    __slots__ = ("delivery", "is_aborted", "is_told", "runner", "taken_at", "task")

    def __init__(self, task: Task, delivery: Delivery, runner: "asyncio.Task[None]") -> None:
        self.task, self.delivery, self.runner = task, delivery, runner
        self.is_aborted = False
        self.is_told = True  # nothing to tell before it has begun
        self.taken_at = time.monotonic()

    def begin(self) -> None:
        """It was not done yet, so it is done here."""
        self.is_told = False
        self.taken_at = time.monotonic()


class Worker:
    """One process of one or more roles, with a number of slots."""

    def __init__(self, bus: Bus, executor: Executor, slots: int) -> None:
        self.bus = bus
        self._executor = executor
        self._slots = slots
        self._jobs: dict[Key, Job] = {}
        self._cancelled: OrderedDict[str, None] = OrderedDict()
        self._pull: Pull | None = None
        self._fresh_seconds = FRESH_SECONDS
        self._reconnected_at = 0.0  # broker time; a broker that came back may have forgotten what it delivered
        self._telling: asyncio.Task[None] | None = None
        self._events = Events(bus)
        self._registry = Registry(bus, executor.tags, slots, lambda: len(self._jobs))

    @property
    def turned_at(self) -> float:
        return self._pull.turned_at if self._pull is not None else time.monotonic()

    async def start(self) -> None:
        consumers = [worker_consumer(tag) for tag in self._executor.tags]
        ack_waits = [await lease_of(self.bus, "TASKS", consumer) for consumer in consumers]
        await self.bus.subscribe(subjects.ALL_CONTROL, self._on_control)
        self._fresh_seconds = min(FRESH_SECONDS, *ack_waits)  # … or wait in our socket while we hung and a peer did it
        note = self._events.bounced
        self._pull = Pull(self.bus, "TASKS", consumers, self._slots, min(ack_waits), self._take, note)
        await self._registry.start()
        self.bus.on_reconnect(self._on_reconnect)
        await self._on_reconnect()
        await self._pull.start()
        self._telling = asyncio.get_running_loop().create_task(self._tell_starts())
        log.info("ready: tags %s, %d slots", ", ".join(self._executor.tags), self._slots)

    async def stop(self, grace_seconds: float) -> None:
        """Close the pulls, let what runs finish, hand the rest back: nothing waits for an ack timeout."""
        if self._pull is None:
            return
        running = await self._pull.close()
        if running:
            _, late = await asyncio.wait(running, timeout=max(0.0, grace_seconds - 5.0))
            for job in list(self._jobs.values()):
                job.runner.cancel()
            if late:
                await asyncio.wait(late, timeout=4.0)
        if self._telling is not None:
            self._telling.cancel()
        await self._registry.stop()
        await self.bus.flush()
        self._pull.stop()

    async def _take(self, delivery: Delivery) -> None:
        task = await self._read(delivery)
        if task is None:
            return
        key = (task.request_id, task.task_id, task.attempt)
        running = self._jobs.get(key)
        if running is not None:
            await _meet_again(running, delivery)
            return
        job = self._jobs[key] = Job(task, delivery, _current_task())
        try:
            if await self._is_settled(task, delivery):
                job.delivery.lease.ack()
                return
            job.begin()
            await self._work(job)
        except asyncio.CancelledError:
            await self._give_up(job)
        except Exception:
            job.delivery.lease.drop()  # also when it is a newer handle than the one that came with this call
            raise
        finally:
            if self._jobs.get(key) is job:
                del self._jobs[key]

    async def _read(self, delivery: Delivery) -> Task | None:
        try:
            h.checked_sender(delivery.headers)
            h.checked_kind(delivery.headers, {Task.kind: Task})
            return Task.read(await self.bus.body_of(delivery.headers, delivery.data))
        except Invalid as reason:
            source = Source.of(delivery)
            await self.bus.report(str(reason), source, request_id=(delivery.headers or {}).get(h.REQUEST_ID))
            delivery.lease.ack()
            return None

    async def _is_settled(self, task: Task, delivery: Delivery) -> bool:
        """Cancelled, expired, poison, or done already by somebody else: nothing to work on."""
        if task.request_id in self._cancelled or self.bus.clock.now() >= task.deadline:
            return True
        is_suspect = delivery.number > 1 or task.reserved_at < self._reconnected_at
        is_old = self.bus.clock.now() - task.reserved_at > self._fresh_seconds
        if (is_suspect or is_old) and await is_done_already(self.bus, task):
            return True
        if await is_poison(self.bus, task, delivery.number):
            failure = Failure.model_validate(
                {"class": "poison", "message": f"taken {delivery.number - 1} times without a result", "is_final": True}
            )
            outcome = Outcome(ResultStatus.FAILED, "", error=failure)
            await self._append(task, delivery, outcome, 0.0)
            source = Source.of(delivery)
            await self.bus.report(f"task {task.once}: {failure.message}", source, request_id=task.request_id)
            return True
        return False

    async def _work(self, job: Job) -> None:
        task, delivery = job.task, job.delivery
        carrier = delivery.headers or {}
        if not telemetry.is_sampled(carrier):
            await self._run(job)
            return
        attributes = telemetry.attributes_of("process", delivery.subject, "tasks.{tag}", task.request_id)
        with telemetry.span(
            "process tasks.{tag}",
            telemetry.SpanKind.CONSUMER,
            {**attributes, "messaging.nats.delivery_count": delivery.number, "muster.attempt": task.attempt},
            carrier=carrier,
        ) as span:
            outcome = await self._run(job)
            if outcome.error is not None:
                telemetry.failed(span, outcome.error.message)

    async def _run(self, job: Job) -> Outcome:
        """Run the role, store its result, and only then ack."""
        task = job.task
        began = time.monotonic()
        outcome = await self._executor.run(task, self._events.context(task))
        seconds = time.monotonic() - began
        job.is_told = True
        try:
            await self._append(task, job.delivery, outcome, seconds)
        except Invalid as reason:
            outcome = too_large(outcome, str(reason))
            await self._append(task, job.delivery, outcome, seconds)
        job.delivery.lease.ack()
        log.info("✓ result  %s/%s  %s  %.2f s", task.request_id, task.task_id, outcome.status, seconds)
        return outcome

    async def _tell_starts(self) -> None:
        """Say `started` for what runs longer than a moment: one look at all jobs instead of a timer for each."""
        while True:
            await asyncio.sleep(STARTED_AFTER_SECONDS)
            latest = time.monotonic() - STARTED_AFTER_SECONDS
            for job in list(self._jobs.values()):
                if not job.is_told and job.taken_at <= latest:
                    job.is_told = True
                    self._say_started(job)

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
                    subject, result, request_id=request_id, once=result.once, carrier=delivery.headers, sender=sender
                )
            except Retryable as reason:
                log.warning("… result  %s/%s  not stored yet: %s", request_id, task.task_id, reason)
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _give_up(self, job: Job) -> None:
        """Stopped by an abort: settle it. Stopped with the worker: hand it back and say so."""
        task = job.task
        if job.is_aborted:
            job.delivery.lease.ack()
            log.info("■ task    %s/%s  stopped", task.request_id, task.task_id)
            return
        await self._events.handed_back(job.delivery, task.once)
        job.delivery.lease.hand_back()
        log.info("← task    %s/%s  handed back", task.request_id, task.task_id)

    def _say_started(self, job: Job) -> None:
        task = job.task
        log.info("→ task    %s/%s  attempt %d", task.request_id, task.task_id, task.attempt)
        self._events.started(task, job.delivery, self._executor.role_of(task.tag))

    async def _on_reconnect(self) -> None:
        self._reconnected_at = self.bus.clock.now()

    def _on_control(self, message: Heard) -> None:
        try:
            h.checked_sender(message.headers)
            control = h.checked_kind(message.headers, CONTROL_KINDS).read(message.data)
        except Invalid as reason:
            log.debug("a control message that cannot be used: %s", reason)
            return
        if control.request_id != subjects.last_token(message.subject):
            return  # the broker lets one speak on a subject; what the body claims is not checked there
        match control:
            case Cancel():
                self._abort(lambda job: job.task.request_id == control.request_id)
                self._remember(control.request_id)
            case Abort(attempts=()):
                self._abort(lambda job: job.task.request_id == control.request_id)
                self._remember(control.request_id)
            case Abort():
                named = set(control.attempts)
                self._abort(
                    lambda job: (
                        job.task.request_id == control.request_id and (job.task.task_id, job.task.attempt) in named
                    )
                )

    def _remember(self, request_id: str) -> None:
        self._cancelled[request_id] = None
        if len(self._cancelled) > REMEMBERED_CANCELS:
            self._cancelled.popitem(last=False)

    def _abort(self, is_meant: Callable[[Job], bool]) -> None:
        for job in list(self._jobs.values()):
            if is_meant(job):
                job.is_aborted = True
                job.runner.cancel()


async def _meet_again(running: Job, delivery: Delivery) -> None:
    """What runs here came once more: delivered again, or stored a second time."""
    if running.delivery.sequence == delivery.sequence:
        running.delivery.lease.drop()
        running.delivery = delivery  # only the handle is new
    else:
        delivery.lease.ack()  # a second copy: the first one is the lease


def _current_task() -> "asyncio.Task[None]":
    task = asyncio.current_task()
    assert task is not None
    return task
