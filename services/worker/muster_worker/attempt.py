"""One attempt at a task in this worker, from its delivery to its ack.

The task is judged. If there is nothing to run, it is acked; a poison task gets a failed result first. Otherwise its
role runs, the result is stored, and only then the task is acked. A cancellation in between means one of three things:
the attempt was aborted (ack), the worker stops (hand back, with a note), or the role cancelled it (failed result, ack).
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from opentelemetry.trace import Span

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol.explain import failure_text
from muster_protocol.messages import Task
from muster_worker.events import Events
from muster_worker.executor import Executor
from muster_worker.history import History, Verdict
from muster_worker.outcome import Outcome, failed, failure
from muster_worker.result import Results, log_name
from muster_worker.spans import (
    is_traced,
    note_lease,
    note_redelivery,
    note_start,
    record_cancelled,
    record_outcome,
    task_span,
)

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

    __slots__ = ("_handler", "_resources", "_span", "begun_at", "delivery", "is_aborted", "start_announced", "task")

    def __init__(self, task: Task, delivery: Delivery, resources: Resources) -> None:
        self.task, self.delivery = task, delivery
        self._resources = resources
        self._handler = asyncio.current_task()
        self.is_aborted = False
        self.start_announced = True  # there is no start to announce before the role begins
        self.begun_at = time.monotonic()
        self._span: Span | None = None

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
            note_redelivery(self._span, delivery)
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
        bus, task, delivery = self._resources.bus, self.task, self.delivery
        if not is_traced(bus, delivery):
            await self._run()
            return
        cancelled: asyncio.CancelledError | None = None
        with task_span(bus, task, delivery, self._resources.executor.role_of(task.tag)) as span:
            self._span = span
            note_start(span, task, delivery, bus.clock.now())
            try:
                record_outcome(span, await self._run())
            except asyncio.CancelledError as error:
                is_stopping = self._resources.stopping.is_set()
                record_cancelled(span, is_aborted=self.is_aborted, is_stopping=is_stopping)
                cancelled = error  # raised again outside: a span that was handed back has not failed
        if cancelled is not None:
            raise cancelled

    async def _run(self) -> Outcome:
        """Run the role, store its result, and only then ack."""
        began = time.monotonic()
        outcome = await self._resources.executor.run(self.task, self._resources.events.context(self.task))
        seconds = time.monotonic() - began
        note_lease(self.delivery.lease)
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
