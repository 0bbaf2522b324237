"""Records that an attempt failed although no worker said so: its timeout passed, or its task could not be published."""

from muster_protocol.messages import Failure, Result, ResultStatus
from muster_supervisor.abort import abort_attempts
from muster_supervisor.decide import Expire, timed_out
from muster_supervisor.owner import Owner


async def expire(owner: Owner, step: Expire) -> None:
    """Record that an attempt gave no result in time, and tell its worker to stop."""
    attempt = owner.state.tasks[step.task_id].attempts[step.attempt - 1]
    if attempt.result is not None:
        return  # it came while an earlier step was carried out
    failure = timed_out(step.task_id, attempt.timeout_seconds)
    await fail_attempt(owner, step.task_id, step.attempt, failure, attempt.timeout_seconds)
    owner.in_background(lambda: abort_attempts(owner, ((step.task_id, step.attempt),), "its timeout was reached"))


async def fail_attempt(owner: Owner, task_id: str, attempt: int, failure: Failure, seconds: float = 0.0) -> None:
    """Write a failed result in the owner's name."""
    result = Result(
        request_id=owner.request_id,
        task_id=task_id,
        attempt=attempt,
        status=ResultStatus.FAILED,
        error=failure,
        worker="",  # no worker reported it
        role=owner.state.tasks[task_id].spec.tag or "",
        seconds=seconds,
    )
    # The term is in the id: what we wrote under an earlier one does not count and must not make this a duplicate.
    await owner.append(result, f"{result.message_id}.{owner.term}")
