"""One attempt at a task in this worker, from its delivery to its ack.

The task is judged. If there is nothing to run, it is acked; a poison task gets a failed result first. Otherwise its
role runs, the result is stored, and only then the task is acked. A cancellation in between means one of these: the
attempt was aborted (ack), the worker stops or a high task takes the slot (hand back, with a note), or the role
cancelled it (failed result, ack).
An aborted attempt that had spent something, or that another side of the same attempt goes on with, stores that as a
cancelled result. If the other one has the same message, it must not be acked: it is the other's by now. If the other
one gives up meanwhile and its message comes here, that message is handed back: acked here, nobody would have it.
"""

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import Span

from muster_agent.budget import Meter
from muster_agent.models.port import NOTHING
from muster_agent.turns import UNSTORED, Overtaken
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol.conflict import SideId
from muster_protocol.messages import ResultStatus, Task
from muster_worker.events import Events
from muster_worker.executor import Executor, meter_of
from muster_worker.history import History, Verdict
from muster_worker.outcome import Outcome, failed, failure, stopped
from muster_worker.result import Results, log_failure, log_name
from muster_worker.spans import (
    is_traced,
    note_lease,
    note_redelivery,
    note_start,
    record_cancelled,
    record_outcome,
    task_span,
)
from muster_worker.turns.stored import StoredTurns

log = logging.getLogger("muster.worker")

_DONE = {"status": ResultStatus.DONE.value}  # made once: it is logged for every task
RETURN_SECONDS = 0.5  # until a message that came to an attempt that stops is given out again, times its deliveries …
MAX_RETURN_SECONDS = 10.0  # … for a role that does not end must not make the broker busy


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

    def __init__(self, task: Task, delivery: Delivery, resources: Resources) -> None:
        self.task = task
        self.begun = delivery  # names this side for as long as it lives …
        self.delivery = delivery  # … while the last one has the lease
        self._resources = resources
        self._handler = asyncio.current_task()
        has_turns = resources.executor.has_model(task.tag)
        self._meter = meter_of(task, StoredTurns(resources.bus, task, delivery) if has_turns else UNSTORED)
        self._keeps: int | None = None  # the message with which another side goes on
        self._refused: set[int] = set()  # messages that were acked because this one runs
        self._abort_reason = ""
        self._gives_way = ""  # why it is handed back although its worker goes on
        self.notes = list(task.notes)  # of people; those that come while it runs are added
        self._is_settling = False
        self._has_outcome = False
        self.is_aborted = False
        self.is_running = False
        self.start_announced = True  # there is no start to announce before the role begins
        self.begun_at = time.monotonic()
        self._span: Span | None = None

    async def live(self) -> None:
        """Judge the task, run it if it has to be run, and settle its delivery."""
        try:
            try:
                verdict = await self._resources.history.judge(self.task, self.delivery)
                if verdict is Verdict.RUN:
                    await self._work()
                elif verdict is Verdict.UNSURE:
                    await self._hand_back(verdict.value, min(RETURN_SECONDS * self.begun.number, MAX_RETURN_SECONDS))
                else:
                    await self._settle_unrun(verdict)
            except asyncio.CancelledError:
                await self._settle_cancelled()
            except Overtaken as reason:
                await self._leave(reason)
        except BaseException:
            self.delivery.lease.drop()  # a redelivery may have replaced the one that the pull knows and drops
            raise

    def abort(self, reason: str = "", *, keeps: int | None = None) -> None:
        """Stop it without a result that counts; `keeps` is the message with which another side goes on.

        An abort is repeated until it has an effect. Only the first cancels: the role may be cleaning up by now.
        """
        if self._is_settling or (self._has_outcome and keeps is None):
            return  # finished work is kept: its owner gave it up, and nobody else has it
        if keeps in self._refused:  # it was acked here: nobody else can go on with it
            log.warning("… task    %s  goes on: message %s, which was to, was refused here", log_name(self.task), keeps)
            return
        is_first = not self.is_aborted
        self.is_aborted = True
        self._abort_reason = reason
        self._keeps = self._keeps if keeps is None else keeps
        if is_first and self._handler is not None:
            self._handler.cancel()

    def give_way(self, why: str) -> bool:
        """Hand it back unharmed although its worker goes on; False: it is ending, or must go on."""
        is_ending = self.is_aborted or self._has_outcome or self._is_settling or self._gives_way
        if is_ending or self._handler is None or self._meter.must_go_on:
            return False
        self._gives_way = why
        return self._handler.cancel()

    def is_handled_by(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether this task of the event loop brings the attempt to its end."""
        return task is not None and task is self._handler

    def is_side(self, side: SideId) -> bool:
        """Whether this is the side that an abort names."""
        own = self._resources.bus.sender.instance, self.begun.number, self.begun.sequence
        return own == (side.worker, side.delivery, side.task_sequence)

    def answer_check(self, asked_at: float = 0.0) -> None:
        """Say once more that it runs here, if it does: now, and after it was asked, whatever the clocks say."""
        if self.is_running:
            self._announce(asked_at, is_again=self.start_announced)

    async def on_redelivery(self, delivery: Delivery) -> None:
        """The task has arrived once more while it runs here: the same message again, or a second copy of it."""
        if self.delivery.sequence == delivery.sequence != self._keeps:
            self.delivery.lease.drop()
            self.delivery = delivery  # only the lease is new
            note_redelivery(self._span, delivery)
        elif self._keeps is not None:
            await self._return(delivery)
        else:
            self._refused.add(delivery.sequence)
            delivery.lease.ack()  # the first copy keeps its lease
            why = f"the attempt runs here already, from message {self.delivery.sequence}"
            self._resources.events.refused(self.task.attempt_id, delivery, why)
            log.warning("■ task    %s  a second message of it was refused", log_name(self.task))

    async def _return(self, delivery: Delivery) -> None:
        """Hand back what this attempt was stopped for: the other side gave it up, and somebody is to take it later."""
        try:
            await self._resources.events.handed_back(delivery, self.task.attempt_id)
        finally:
            delivery.lease.hand_back(min(RETURN_SECONDS * delivery.number, MAX_RETURN_SECONDS))
        log.info("← task    %s  message %d handed back: it is being stopped", log_name(self.task), delivery.sequence)

    def announce_start(self) -> None:
        """Say that it runs here, once."""
        if not self.start_announced:
            log.info("→ task    %s", log_name(self.task))
            self._announce()

    def _announce(self, not_before: float = 0.0, *, is_again: bool = False) -> None:
        self.start_announced = True
        role = self._resources.executor.role_of(self.task.tag)
        since_start = 0.0 if is_again or not_before else time.monotonic() - self.begun_at  # it may have hung meanwhile
        at = max(not_before, self._resources.bus.clock.now() - since_start)
        self._resources.events.started(self.task, self.begun, role, at, is_again=is_again)

    async def _settle_unrun(self, verdict: Verdict) -> None:
        """Ack a task that is not run; a poison one gets a failed result and a report first."""
        if verdict is Verdict.POISON:
            error = failure("poison", f"taken {self.begun.number - 1} times without a result", is_final=True)
            await self._store(failed("", error), 0.0)
            log_failure(self.task, ResultStatus.FAILED, error, 0.0)
            text = f"task {self.task.attempt_id}: {error.message}"
            await self._resources.bus.report(text, self.delivery, request_id=self.task.request_id)
        elif verdict is not Verdict.DONE_FROM_HERE:  # it may be a copy: the coordinator knows
            self._resources.events.refused(self.task.attempt_id, self.begun, verdict.value)
        self.delivery.lease.ack()
        log.info("■ task    %s  not run: %s", log_name(self.task), verdict.value)

    async def _work(self) -> None:
        """Run the role under a span where the request is traced."""
        self.begun_at = time.monotonic()
        self.start_announced = False
        self.is_running = True
        bus, task, delivery = self._resources.bus, self.task, self.begun
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
                back = "the worker stops" if self._resources.stopping.is_set() else self._gives_way
                record_cancelled(span, is_aborted=self.is_aborted, handed_back=back)
                cancelled = error  # raised again outside: a span that was handed back has not failed
            finally:
                self._span = None  # a redelivery that comes later finds no span that has ended
        if cancelled is not None:
            raise cancelled

    async def _run(self) -> Outcome:
        """Run the role, store its result, and only then ack."""
        began = time.monotonic()
        context = self._resources.events.context(self.task, self.announce_start, self.notes)
        outcome = await self._resources.executor.run(self.task, context, self._meter)
        seconds = time.monotonic() - began
        if self.is_aborted:  # a success would count if it came first, and this one was told to leave that to another
            log.warning("… task    %s  did not stop when it was told to; its outcome is left out", log_name(self.task))
            raise asyncio.CancelledError
        note_lease(self.delivery.lease)
        self._has_outcome = True
        self.start_announced = True
        outcome = await self._store(outcome, seconds)
        self.is_running = False
        self.delivery.lease.ack()
        if outcome.error is None:
            log.info("✓ result  %s  %s  %.2f s", log_name(self.task), outcome.status, seconds, extra=_DONE)
        else:
            log_failure(self.task, outcome.status, outcome.error, seconds)
        return outcome

    async def _store(self, outcome: Outcome, seconds: float) -> Outcome:
        return await self._resources.results.store(self.task, self.begun, outcome, seconds)

    async def _store_spent(self, reason: str) -> None:
        """Store what it has cost, if anything or if another side goes on: as a result that settles nothing."""
        self._is_settling = True
        role = self._resources.executor.role_of(self.task.tag)
        if self._keeps is not None or self._meter.usage != NOTHING:
            outcome = stopped(role, reason, self._meter)
            await self._resources.results.store_spent(self.task, self.begun, outcome, time.monotonic() - self.begun_at)

    async def _settle_aborted(self) -> None:
        """Say what it has cost; ack, unless the other side has this message."""
        await self._store_spent(reason := self._abort_reason or "told to stop")
        if self._keeps == self.delivery.sequence:
            self.delivery.lease.drop()
        else:
            self.delivery.lease.ack()
        log.info("■ task    %s  stopped: %s", log_name(self.task), reason)

    async def _settle_cancelled(self) -> None:
        """Ack an aborted task, hand back that of a stopping worker, fail one whose role cancelled it."""
        self.is_running = False
        if self.is_aborted:
            await self._settle_aborted()
        elif self._resources.stopping.is_set():
            await self._hand_back()
        elif self._gives_way:
            await self._store_spent(self._gives_way)
            await self._hand_back(self._gives_way)
        else:  # if it were handed back, it would be delivered again at once, without end
            error = failure("logic", "the role cancelled its own task")
            try:
                await self._store(failed(self._resources.executor.role_of(self.task.tag), error), 0.0)
            except asyncio.CancelledError:  # aborted or stopped while the failure was not stored yet
                await self._settle_cancelled()
                return
            self.delivery.lease.ack()
            log_failure(self.task, ResultStatus.FAILED, error, time.monotonic() - self.begun_at)

    async def _leave(self, overtaken: Overtaken) -> None:
        """Somebody else has the task and counts its stored turns; if nobody ends it, it is delivered again."""
        self.is_running, self._is_settling, self.start_announced = False, True, True
        self.delivery.lease.drop()
        log.info("■ task    %s  left to another worker: %s", log_name(self.task), overtaken)
        if overtaken.uncounted != NOTHING:
            role, spent = self._resources.executor.role_of(self.task.tag), Meter(usage=overtaken.uncounted)
            outcome = stopped(role, "another worker has the task", spent)
            await self._resources.results.store_spent(self.task, self.begun, outcome, time.monotonic() - self.begun_at)

    async def _hand_back(self, why: str = "the worker stops", delay_seconds: float = 0.0) -> None:
        """Hand back what a stop interrupted or what was not begun, unharmed, with a note."""
        self._is_settling = True  # an abort must not interrupt the note
        try:
            await self._resources.events.handed_back(self.begun, self.task.attempt_id, self._gives_way)
        finally:
            self.delivery.lease.hand_back(delay_seconds)
        log.info("← task    %s  handed back: %s", log_name(self.task), why)
