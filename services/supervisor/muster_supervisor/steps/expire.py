"""Records that an attempt failed although no worker said so: its timeout passed, or its task could not be published."""

import logging

from muster_protocol.attempt_id import AttemptId
from muster_protocol.messages import Failure, Result, ResultStatus
from muster_protocol.status import failure_text
from muster_supervisor.abort import stop
from muster_supervisor.decide import Expire, timed_out
from muster_supervisor.owner import Owner
from muster_supervisor.steps.lost import with_lost

log = logging.getLogger("muster.supervisor")


async def expire(owner: Owner, step: Expire) -> None:
    """Record that an attempt gave no result in time, and tell its worker to stop."""
    _, task_id, number = step.attempt_id
    task = owner.state.tasks[task_id]
    attempt = task.attempts[number - 1]
    if attempt.result is not None or task.success is not None:
        return  # it came while an earlier step was carried out
    failure = timed_out(task_id, attempt.timeout_seconds)
    await fail_attempt(owner, step.attempt_id, failure, attempt.timeout_seconds)
    owner.in_background(lambda: stop(owner, step.attempt_id, attempt.task_sequence, "its timeout was reached"))


async def fail_attempt(owner: Owner, attempt_id: AttemptId, failure: Failure, seconds: float = 0.0) -> None:
    """Write a failed result in the owner's name."""
    result = Result(
        request_id=attempt_id.request_id,
        task_id=attempt_id.task_id,
        attempt=attempt_id.attempt,
        status=ResultStatus.FAILED,
        error=failure,
        worker="",  # no worker reported it
        role=owner.state.tasks[attempt_id.task_id].tag,
        seconds=seconds,
    )
    result = await with_lost(owner, result)
    await owner.append(result)
    request_id, task_id, number = attempt_id
    fields = {"task": task_id, "attempt": number, "status": result.status.value, "error_class": failure.error_class}
    log.warning(
        "✗ result  %s/%s  attempt %d  failed: %s", request_id, task_id, number, failure_text(failure), extra=fields
    )
