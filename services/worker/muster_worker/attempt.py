"""One attempt at a task in this worker, from its delivery to its ack.

The task is judged. If there is nothing to run, it is acked; a poison task gets a failed result first. Otherwise its
role runs, the result is stored, and only then the task is acked. A cancellation in between means one of three things:
the attempt was aborted (ack), the worker stops (hand back, with a note), or the role cancelled it (failed result, ack).
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from muster_bus import telemetry
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol.explain import failure_text
from muster_protocol.messages import Task
from muster_worker.events import Events
from muster_worker.executor import Executor
from muster_worker.history import History, Verdict
from muster_worker.outcome import Outcome, failed, failure
from muster_worker.result import Results, log_name

log = logging.getLogger("muster.worker")


@dataclass(frozen=True, slots=True)
class Resources:
    """What all attempts of one worker use."""

    bus: Bus
    executor: Executor
    history: History
    results: Results
    events: Events
    stopping: asyncio.Event  # set when the worker begins to stop


class RunningAttempt:
    """An attempt that this worker has taken and not settled yet."""

    __slots__ = ("_handler", "_resources", "begun_at", "delivery", "is_aborted", "start_announced", "task")

    def __init__(self, task: Task, delivery: Delivery, resources: Resources) -> None:
        self.task, self.delivery = task, delivery
        self._resources = resources
        self._handler = asyncio.current_task()
        self.is_aborted = False
        self.start_announced = True  # there is no start to announce before the role begins
        self.begun_at = time.monotonic()

    async def live(self) -> None:
        """Judge the task, run it if it has to be run, and settle its delivery."""
        try:
            verdict = await self._resources.history.judge(self.task, self.delivery.number)
            if verdict is Verdict.RUN:
                await self._work()
            else:
                await self._settle_unrun(verdict)
        except asyncio.CancelledError:
            await self._settle_cancelled()
        except Exception:
            self.delivery.lease.drop()  # a redelivery may have replaced the one that the pull knows and drops
            raise

    def abort(self) -> None:
        """Stop it; its task is acked without a result."""
        self.is_aborted = True
        if self._handler is not None:
            self._handler.cancel()

    def on_redelivery(self, delivery: Delivery) -> None:
        """The task has arrived once more while it runs here: the same message again, or a second copy of it."""
        if self.delivery.sequence == delivery.sequence:
            self.delivery.lease.drop()
            self.delivery = delivery  # only the lease is new
        else:
            delivery.lease.ack()  # the first copy keeps its lease

    def announce_start(self) -> None:
        self.start_announced = True
        log.info("→ task    %s", log_name(self.task))
        self._resources.events.started(self.task, self.delivery, self._resources.executor.role_of(self.task.tag))

    async def _settle_unrun(self, verdict: Verdict) -> None:
        """Ack a task that is not run; a poison one gets a failed result and a report first."""
        if verdict is Verdict.POISON:
            error = failure("poison", f"taken {self.delivery.number - 1} times without a result", is_final=True)
            await self._store(failed("", error), 0.0)
            text = f"task {self.task.attempt_id}: {error.message}"
            await self._resources.bus.report(text, self.delivery, request_id=self.task.request_id)
        self.delivery.lease.ack()
        log.info("■ task    %s  not run: %s", log_name(self.task), verdict.value)

    async def _work(self) -> None:
        """Run the role under a span where the request is traced."""
        self.begun_at = time.monotonic()
        self.start_announced = False
        task, delivery = self.task, self.delivery
        carrier = delivery.headers or {}
        if not telemetry.is_sampled(carrier):
            await self._run()
            return
        attributes = telemetry.attributes_of("process", delivery.subject, task.request_id)
        with telemetry.span(
            telemetry.name_of("process", delivery.subject),
            telemetry.SpanKind.CONSUMER,
            {**attributes, "messaging.nats.delivery_count": delivery.number, "muster.attempt": task.attempt},
            carrier=carrier,
            root=task.request_id,
        ) as span:
            outcome = await self._run()
            if outcome.error is not None:
                telemetry.failed(span, outcome.error.message)

    async def _run(self) -> Outcome:
        """Run the role, store its result, and only then ack."""
        began = time.monotonic()
        outcome = await self._resources.executor.run(self.task, self._resources.events.context(self.task))
        seconds = time.monotonic() - began
        self.start_announced = True
        outcome = await self._store(outcome, seconds)
        self.delivery.lease.ack()
        if outcome.error is None:
            log.info("✓ result  %s  %s  %.2f s", log_name(self.task), outcome.status, seconds)
        else:
            reason = failure_text(outcome.error)
            log.info("✗ result  %s  %s: %s  %.2f s", log_name(self.task), outcome.status, reason, seconds)
        return outcome

    async def _store(self, outcome: Outcome, seconds: float) -> Outcome:
        return await self._resources.results.store(self.task, self.delivery, outcome, seconds)

    async def _settle_cancelled(self) -> None:
        """Ack an aborted task, hand back that of a stopping worker, fail one whose role cancelled it."""
        if self.is_aborted:
            self.delivery.lease.ack()
            log.info("■ task    %s  stopped", log_name(self.task))
        elif self._resources.stopping.is_set():
            await self._resources.events.handed_back(self.delivery, self.task.attempt_id)
            self.delivery.lease.hand_back()
            log.info("← task    %s  handed back", log_name(self.task))
        else:  # if it were handed back, it would be delivered again at once, without end
            error = failure("logic", "the role cancelled its own task")
            role = self._resources.executor.role_of(self.task.tag)
            try:
                await self._store(failed(role, error), 0.0)
            except asyncio.CancelledError:  # aborted or stopped while the failure was not stored yet
                await self._settle_cancelled()
                return
            self.delivery.lease.ack()
