"""Makes the Result message of an outcome and stores it, again and again until the broker acknowledges it."""

import asyncio
import logging

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol.errors import Invalid, MusterError, Retryable
from muster_protocol.messages import Failure, Result, ResultStatus, Task
from muster_protocol.status import failure_text
from muster_worker.outcome import Outcome, too_large

log = logging.getLogger("muster.worker")

RETRY_SECONDS = 0.5  # between two tries to put a large result into the object store


class Results:
    """Stores the results of one worker."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def store(self, task: Task, delivery: Delivery, outcome: Outcome, seconds: float) -> Outcome:
        """Store the outcome and return it; one that is too large for a message becomes a failed one."""
        try:
            await self._store(task, delivery, outcome, seconds)
        except Invalid as reason:
            outcome = too_large(outcome, str(reason))
            await self._store(task, delivery, outcome, seconds)
        return outcome

    async def store_spent(self, task: Task, delivery: Delivery, outcome: Outcome, seconds: float) -> None:
        """Store what an attempt that was stopped has cost; what cannot be stored is said, and stops nobody."""
        try:
            await self.store(task, delivery, outcome, seconds)
        except (asyncio.CancelledError, MusterError) as error:
            used = outcome.usage
            lost = f"{used.tokens} tokens, {used.usd:.4f} USD; {str(error) or 'the worker stops'}"
            log.warning("… result  %s  what it had spent was not stored: %s", log_name(task), lost)

    async def _store(self, task: Task, delivery: Delivery, outcome: Outcome, seconds: float) -> None:
        result = self._result(task, delivery, outcome, seconds)
        origin = self._bus.origin(task.request_id, role=outcome.role)
        while True:
            try:
                await self._bus.store(result, origin, carrier=delivery.headers)
            except Retryable as reason:
                log.warning("… result  %s  not stored yet: %s", log_name(task), reason)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    def _result(self, task: Task, delivery: Delivery, outcome: Outcome, seconds: float) -> Result:
        return Result(
            request_id=task.request_id,
            task_id=task.task_id,
            attempt=task.attempt,
            status=outcome.status,
            output=outcome.output,
            error=outcome.error,
            worker=self._bus.sender.instance,
            role=outcome.role,
            delivery=delivery.number,
            task_sequence=delivery.sequence,
            usage=outcome.usage,
            spent=outcome.spent,
            seconds=round(seconds, 4),
            tool_calls=outcome.tool_calls,
            tasks=outcome.tasks,
            model=outcome.model,
        )


def log_failure(task: Task, status: ResultStatus, error: Failure, seconds: float) -> None:
    said = log_name(task), status, error.error_class, failure_text(error), seconds
    fields = {"status": status.value, "error_class": error.error_class}
    log.warning("✗ result  %s  %s: %s: %s  %.2f s", *said, extra=fields)


def log_name(task: Task) -> str:
    """An attempt as the worker's log lines name it."""
    return f"{task.request_id}/{task.task_id}  attempt {task.attempt}"
