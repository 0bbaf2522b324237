"""Records the plan of a request, once; a request for which no plan can be made or stored is refused.

`planner.py` makes the plan; here it gets its time limit, its retries and its place in the log.
"""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext

from muster_agent.team.schema import Team
from muster_bus.tracing import names
from muster_bus.tracing.tracing import error_type
from muster_protocol.counted import counted
from muster_protocol.errors import Invalid, MusterError, Retryable
from muster_protocol.messages import GrowthLimits, PlanRecorded, Request, Usage
from muster_protocol.plan import TABLE, Plan, Retry
from muster_supervisor.owner import Owner
from muster_supervisor.planning.planner import Planned, Unplannable, make_plan
from muster_supervisor.spans import plan_span
from muster_supervisor.steps.answer import refuse

log = logging.getLogger("muster.supervisor")

MAX_GROUPS, MAX_SAME = 20, 8  # of tasks that are the same work: more of them tell nothing new
RETRY_SECONDS = 1.0  # before a plan is asked for or stored again


async def plan(owner: Owner) -> None:
    """Make the plan and record it, unless the log has one by then."""
    request, team, model = owner.request, owner.resources.team, owner.resources.model
    if request is None:
        await refuse(owner, "its message is gone and it has no plan yet; ask again under another id", "lost")
        return
    try:
        with plan_span(owner) as span:
            async with asyncio.timeout(owner.seconds_left()), _model_slot(owner, request):
                made = await make_plan(request, team, model)
            if span is not None:
                span.set_attribute(names.TASKS, len(made.plan.tasks))
    except (TimeoutError, Retryable) as error:
        await _pause(owner, "planning is tried again", error)
        return
    except MusterError as error:
        owner.spent += error.usage if isinstance(error, Unplannable) else Usage()
        await refuse(owner, str(error), error_type(error))
        return
    except Exception as error:
        log.exception("… request %s: planning failed", owner.request_id)
        await refuse(owner, f"no plan could be made: {error!r}", error_type(error))
        return
    plan_entry = _plan_entry(owner, request, made)
    await _record(owner, plan_entry)


def _plan_entry(owner: Owner, request: Request, made: Planned) -> PlanRecorded:
    """What is written: the plan, and what holds for all of its tasks."""
    team = owner.resources.team
    return PlanRecorded(
        plan=made.plan,
        text=request.text or made.plan.goal,
        team=team.team,
        request_hash=owner.request_hash,
        deadline=owner.deadline,
        in_flight=min(request.in_flight or team.limits.in_flight, team.limits.in_flight),
        max_attempts=team.limits.max_attempts,
        retry=_retries(made.plan, team),
        timeout_seconds=team.limits.task_timeout_seconds,
        budget=request.budget,
        growth=growth_limits(request, team),
        planner=owner.resources.model.name if request.text else "given",
        warnings=made.warnings,
        same_work=_listed(made.same_work),
        usage=made.usage,
    )


async def _record(owner: Owner, plan_entry: PlanRecorded) -> None:
    """Write the plan: one that is too large is refused; one that cannot be stored now is kept and tried again."""
    while _is_wanted(owner):  # after an entry that came meanwhile the same plan is tried again
        try:
            if await owner.compare_and_set(plan_entry):
                log.info("☰ plan    %s  %s", owner.request_id, counted(len(plan_entry.plan.tasks), "task"))
        except Retryable as error:
            await _pause(owner, "the plan is not stored yet", error)
        except Invalid as error:
            owner.spent += plan_entry.usage
            await refuse(owner, f"the plan cannot be stored: {error}", "invalid")


def growth_limits(request: Request, team: Team) -> GrowthLimits:
    """How far the plan may grow."""
    return GrowthLimits(tasks=min(team.limits.tasks, request.budget.tasks or team.limits.tasks))


def _listed(groups: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """What a person can look through."""
    return tuple(group[:MAX_SAME] for group in groups[:MAX_GROUPS])


def _retries(plan: Plan, team: Team) -> dict[str, Retry]:
    """What the team says about the retries of each tag of the plan, where it says something."""
    named = ((task.tag, *task.roles) for task in plan.tasks)
    tags = {tag: None for tags in named for tag in tags if tag is not None}  # in the order of the plan
    said = {tag: team.retry_of(tag) for tag in tags}
    return {tag: retry for tag, retry in said.items() if retry != TABLE}


def _is_wanted(owner: Owner) -> bool:
    """Whether a plan would still be of use."""
    state = owner.state
    return state.plan_entry is None and state.answer is None and state.cancelled is None and owner.seconds_left() > 0


async def _pause(owner: Owner, what: str, error: Exception) -> None:
    """Remember why there is no plan yet, and wait a moment or until the log changes."""
    if owner.seconds_left() > 0:  # else `due` says that the deadline was reached
        owner.planning_error = f"{what}: {str(error) or type(error).__name__}"
        log.warning("… request %s: %s", owner.request_id, owner.planning_error)
        await owner.log.changed(min(RETRY_SECONDS, owner.seconds_left()))


def _model_slot(owner: Owner, request: Request) -> AbstractAsyncContextManager[object]:
    """A slot of the model; a plan that was given needs no model and waits for no slot."""
    return owner.resources.model_slots if request.text is not None else nullcontext()
