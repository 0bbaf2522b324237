"""Prepares the next attempt of a failed task: as it was, or with a description by a model that sees the error."""

import asyncio
import logging

from muster_agent.models.port import Ask, RefineBrief, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_bus.process.about import work_for
from muster_protocol.messages import Revision, Usage, refining
from muster_supervisor.decide import Refine, TryAgain
from muster_supervisor.owner import Owner
from muster_supervisor.spans import back_off_span
from muster_supervisor.spending import paying

log = logging.getLogger("muster.supervisor")

REFINE_SECONDS = 30.0


def start_revising(owner: Owner, step: Refine | TryAgain) -> None:
    """Write the revision in the background: a slow model must delay neither other tasks nor a cancel."""
    owner.revising.add(step.attempt_id.task_id)
    owner.in_background(lambda: _revise(owner, step))


async def _revise(owner: Owner, step: Refine | TryAgain) -> None:
    _, task_id, attempt = step.attempt_id
    work_for(step.attempt_id)
    task = owner.state.tasks[task_id]
    reason = task.reason or ""
    description, usage = task.description, Usage()
    try:
        with back_off_span(owner, step):
            if isinstance(step, Refine):
                description, usage = await _refined(owner, step)
            revision = Revision(
                task_id=task_id,
                attempt=attempt,
                description=description,
                not_before=step.not_before,
                reason=reason,
                usage=usage,
            )
            await owner.append(revision)
    finally:
        owner.revising.discard(task_id)
        owner.log.wake()


async def _refined(owner: Owner, step: Refine) -> tuple[str, Usage]:
    """A better description and what it cost; if the model fails, the task's own."""
    task = owner.state.tasks[step.attempt_id.task_id]
    description, model = task.spec.description, paying(owner, refining(*step.attempt_id[1:]))
    try:
        async with asyncio.timeout(min(REFINE_SECONDS, owner.seconds_left())), owner.resources.model_slots:
            reply = await ask_with_retry(model, Ask(RefineBrief(description, task.reason or "")))
            return require_complete(reply).text or description, model.usage
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the task is tried again
        task_id = step.attempt_id.task_id
        log.warning("… task    %s/%s: retried with its old description: %r", owner.request_id, task_id, error)
    return description, model.usage
