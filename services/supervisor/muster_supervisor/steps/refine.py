"""Prepares the next attempt of a failed task: as it was, or with a description by a model that sees the error.

The model may also say that no description can help: then the task is not tried again.
"""

import asyncio
import logging

from muster_agent.models.port import Ask, RefineBrief, require_complete
from muster_agent.models.refined import RefineDraft, refined
from muster_agent.models.retry import ask_with_retry
from muster_agent.team.schema import FunctionRole, ModelRole
from muster_bus.process.about import work_for
from muster_protocol.fold import TaskState
from muster_protocol.messages import Revision, Usage, refining
from muster_protocol.workers.role_card import RoleCard
from muster_supervisor.decide import Refine, TryAgain
from muster_supervisor.owner import Owner
from muster_supervisor.spans import back_off_span
from muster_supervisor.spending import paying
from muster_supervisor.steps.wanted import Unwanted, while_wanted

log = logging.getLogger("muster.supervisor")

REFINE_SECONDS = 30.0
HOPELESS = "words cannot mend this"


def start_revising(owner: Owner, step: Refine | TryAgain) -> None:
    """Write the revision in the background: a slow model must delay neither other tasks nor a cancel."""
    owner.revising.add(step.attempt_id.task_id)
    owner.in_background(lambda: _revise(owner, step))


async def _revise(owner: Owner, step: Refine | TryAgain) -> None:
    _, task_id, attempt = step.attempt_id
    work_for(step.attempt_id)
    task = owner.state.tasks[task_id]
    reason = task.reason or ""
    draft, usage = RefineDraft(can_be_mended=True, description=task.description, reason=""), Usage()
    try:
        with back_off_span(owner, step):
            if isinstance(step, Refine):
                draft, usage = await _refined(owner, step)
            revision = Revision(
                task_id=task_id,
                attempt=attempt,
                description=draft.description or task.spec.description,
                not_before=step.not_before,
                reason=reason if draft.can_be_mended else _hopeless(draft.reason, reason),
                usage=usage,
                gives_up=not draft.can_be_mended,
            )
            await owner.append(revision)
    finally:
        owner.revising.discard(task_id)
        owner.log.wake()


async def _refined(owner: Owner, step: Refine) -> tuple[RefineDraft, Usage]:
    """What the model says and what it cost; if the model fails, the task's own description."""
    task = owner.state.tasks[step.attempt_id.task_id]
    model = paying(owner, refining(*step.attempt_id[1:]))
    try:
        async with asyncio.timeout(min(REFINE_SECONDS, owner.seconds_left())), owner.model_slot():
            ask = Ask(_brief(owner, task, step.attempt_id.attempt))
            reply = await while_wanted(owner, ask_with_retry(model, ask))
            return refined(require_complete(reply).text), model.usage
    except Unwanted:
        log.debug("… request %s: it is being ended, nobody is to describe %s anew", owner.request_id, task.spec.id)
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the task is tried again
        task_id = step.attempt_id.task_id
        log.warning("… task    %s/%s: retried with its old description: %r", owner.request_id, task_id, error)
    return RefineDraft(can_be_mended=True, description=task.spec.description, reason=""), model.usage


def _brief(owner: Owner, task: TaskState, attempt: int) -> RefineBrief:
    """All that tells why it failed: the role that did, its tools, what was wanted of it, and the error."""
    name = task.result.role if task.result is not None else task.spec.tag
    role = next((role for role in owner.resources.team.roles if role.name == name), None)
    spec = task.spec
    return RefineBrief(
        spec.description,
        task.reason or "",
        last=task.description if task.description != spec.description else "",
        role=None if role is None else RoleCard(name=role.name, tags=role.tags, description=role.description),
        persona=role.persona if isinstance(role, ModelRole) else "",
        tools=() if role is None or isinstance(role, FunctionRole) else tuple(tool.use for tool in role.tools),
        expected_output=spec.expected_output,
        inputs=spec.inputs,
        notes=tuple(note.reason for note in owner.state.notes),
        attempts_left=max(1, task.max_attempts - attempt + 1),
    )


def _hopeless(why: str, error: str) -> str:
    """Why there is no further attempt, and what it failed with."""
    return f"{HOPELESS}: {why.strip().rstrip('.') or 'no reason given'}; it failed with: {error}"
