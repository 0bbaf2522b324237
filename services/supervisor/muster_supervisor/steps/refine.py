"""Prepares the next attempt of a failed task: a model sees the error and writes a better description."""

import asyncio
import logging

from muster_agent.models.port import Ask, RefineBrief, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_bus.process.about import work_for
from muster_protocol.messages import Revision, Usage
from muster_supervisor.decide import Refine
from muster_supervisor.owner import Owner
from muster_supervisor.spans import refine_span

log = logging.getLogger("muster.supervisor")

REFINE_SECONDS = 30.0


def start_refining(owner: Owner, step: Refine) -> None:
    """Refine in the background: a slow model must delay neither other tasks nor a cancel."""
    owner.refining.add(step.attempt_id.task_id)
    owner.in_background(lambda: _refine(owner, step))


async def _refine(owner: Owner, step: Refine) -> None:
    work_for(step.attempt_id)
    try:
        with refine_span(owner, step.attempt_id, step.not_before - owner.now()):
            await _revise(owner, step)
    finally:
        owner.refining.discard(step.attempt_id.task_id)
        owner.log.wake()


async def _revise(owner: Owner, step: Refine) -> None:
    """Write the revision; if the model fails, the description stays as it is."""
    _, task_id, attempt = step.attempt_id
    task = owner.state.tasks[task_id]
    description, usage = task.spec.description, Usage()
    try:
        async with asyncio.timeout(min(REFINE_SECONDS, owner.seconds_left())), owner.resources.model_slots:
            brief = RefineBrief(description, task.reason or "")
            reply = await ask_with_retry(owner.resources.model, Ask(brief))
            usage = reply.usage
            description = require_complete(reply).text or description
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the task is tried again
        log.warning("… task    %s/%s: retried with its old description: %r", owner.request_id, task_id, error)
    revision = Revision(
        task_id=task_id,
        attempt=attempt,
        description=description,
        not_before=step.not_before,
        reason=task.reason or "",
        usage=usage,
    )
    await owner.append(revision)
