"""Fails attempts for which no worker comes, early enough for the rest of their request."""

from functools import partial

from muster_supervisor.abort import stop
from muster_supervisor.choosing.unserved import given_up, nobody
from muster_supervisor.intake import Intake
from muster_supervisor.owner import Owner
from muster_supervisor.steps.expire import fail_attempt


def give_up_unserved(intake: Intake, tag: str, since: float, now: float) -> None:
    """Fail, in the background, what has waited on a tag long enough since its last worker was there."""
    for run in intake.runs.values():
        owner = run.owner
        if owner.state.answer is None and owner.term and owner.state.term == owner.term:
            owner.in_background(partial(_give_up, owner, tag, since, now))


async def _give_up(owner: Owner, tag: str, since: float, now: float) -> None:
    for attempt_id in given_up(owner.state, tag, since, now):
        task = owner.state.tasks[attempt_id.task_id]
        attempt = task.attempts[attempt_id.attempt - 1]
        if attempt.result is not None or task.success is not None:
            continue  # it came while an earlier one was written
        failure = nobody(tag, now - since, set(task.spec.roles) - set(task.tried))
        await fail_attempt(owner, attempt_id, failure)
        await stop(owner, attempt_id, attempt.task_sequence, failure.message)
