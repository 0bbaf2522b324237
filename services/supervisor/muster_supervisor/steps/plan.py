"""Records the plan of a request, once; a request for which no plan can be made or stored is refused.

`planner.py` makes the plan; here it gets its time limit, its retries and its place in the log.
"""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext

from muster_agent.models.port import Model
from muster_agent.team.schema import ModelRole, Team
from muster_bus.tracing import names
from muster_bus.tracing.tracing import error_type
from muster_protocol.counted import counted
from muster_protocol.errors import Invalid, MusterError, Retryable, Terminal
from muster_protocol.messages import PLAN, GrowthLimits, PlanRecorded, Request, Usage
from muster_protocol.plan import TABLE, Retry
from muster_supervisor.owner import Owner
from muster_supervisor.planning.briefing import NOTHING_SEEN
from muster_supervisor.planning.planner import Planned, Unplannable, make_plan
from muster_supervisor.spans import plan_span
from muster_supervisor.spending import paying
from muster_supervisor.steps.answer import refuse
from muster_supervisor.steps.expect import with_expectations
from muster_supervisor.steps.seen import seen_now
from muster_supervisor.steps.wanted import Unwanted, while_wanted

log = logging.getLogger("muster.supervisor")

MAX_GROUPS, MAX_SAME = 20, 8  # of tasks that are the same work: more of them tell nothing new
RETRY_SECONDS = 1.0  # before a plan is asked for or stored again


async def plan(owner: Owner) -> None:
    """Make the plan and record it, unless the log has one by then."""
    request, model = owner.request, paying(owner, PLAN)
    if request is None:
        await refuse(owner, "its message is gone and it has no plan yet; ask again under another id", "lost")
        return
    try:
        owner.resources.callbacks.check(request.callback_url)
        with plan_span(owner) as span:
            async with asyncio.timeout(owner.seconds_left()):
                making = _planned(owner, request, model)
                planned = await making if request.text is None else await while_wanted(owner, making)
            if span is not None:
                span.set_attribute(names.TASKS, len(planned.plan.tasks))
    except Unwanted:
        owner.spent += model.usage
        return
    except (TimeoutError, Retryable) as error:
        await _pause(owner, "planning is tried again", error)
        return
    except MusterError as error:
        owner.spent += model.usage if isinstance(error, Unplannable | Terminal) else Usage()
        await refuse(owner, str(error), error_type(error))
        return
    except Exception as error:
        log.exception("… request %s: planning failed", owner.request_id)
        await refuse(owner, f"no plan could be made: {error!r}", error_type(error))
        return
    await _record(owner, _entry_of(owner, request, planned))


def _entry_of(owner: Owner, request: Request, planned: Planned) -> PlanRecorded:
    """The plan as it stands in the log, with what holds for the request."""
    team, plan, limits = owner.resources.team, planned.plan, owner.resources.team.limits
    approve = team.supervisor.approve if request.approve is None else request.approve
    return PlanRecorded(
        plan=plan,
        text=request.text or plan.goal,
        team=team.team,
        request_hash=owner.request_hash,
        deadline=owner.deadline,
        priority=request.priority,
        in_flight=min(request.in_flight or team.limits.in_flight, team.limits.in_flight),
        max_attempts=limits.max_attempts,
        retry=_retries(team),
        other_models=_other_models(team),
        timeout_seconds=limits.task_timeout_seconds,
        budget=request.budget,
        growth=growth_limits(request, team),
        answer_schema=request.answer_schema,
        approve=approve,
        person_seconds=_person_seconds(owner, request),
        planner=owner.resources.model.name if request.text else "given",
        warnings=planned.warnings,
        same_work=_listed(planned.same_work),
        usage=planned.usage,
    )


async def _planned(owner: Owner, request: Request, model: Model) -> Planned:
    async with _model_slot(owner, request):
        seen = NOTHING_SEEN if request.text is None else await seen_now(owner)  # a given plan needs nothing of it
        return await make_plan(request, owner.resources.team, model, seen)


async def _record(owner: Owner, plan_entry: PlanRecorded) -> None:
    """Write the plan: one that is too large is refused; one that cannot be stored now is kept and tried again."""
    plan_entry = with_expectations(owner, plan_entry)
    while _is_wanted(owner):  # after an entry that came meanwhile the same plan is tried again
        try:
            if await owner.compare_and_set(_with_usage(owner, plan_entry)):
                log.info("☰ plan    %s  %s", owner.request_id, counted(len(plan_entry.plan.tasks), "task"))
        except Retryable as error:
            await _pause(owner, "the plan is not stored yet", error)
        except Invalid as error:
            owner.spent += paying(owner, PLAN).usage
            await refuse(owner, f"the plan cannot be stored: {error}", "invalid")


def growth_limits(request: Request, team: Team) -> GrowthLimits:
    """How far the plan may grow. Whoever gives the plan, or says how many tasks it has, gets no others by a model."""
    limits = team.limits
    is_open = request.text is not None and request.num_tasks is None
    return GrowthLimits(
        tasks=min(limits.tasks, request.budget.tasks or limits.tasks),
        depth=limits.depth,
        rounds=limits.rounds if is_open else 0,
        replacements=limits.replacements if is_open else 0,
    )


def _with_usage(owner: Owner, plan_entry: PlanRecorded) -> PlanRecorded:
    """What all tries did cost, also those that came to nothing."""
    return plan_entry.model_copy(update={"usage": paying(owner, PLAN).usage})


def _listed(groups: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """What a person can look through."""
    return tuple(group[:MAX_SAME] for group in groups[:MAX_GROUPS])


def _retries(team: Team) -> dict[str, Retry]:
    """What the team says about the retries of each tag, where it says something: a plan that changes may have any."""
    said = {tag: team.retry_of(tag) for tag in team.tags}
    return {tag: retry for tag, retry in said.items() if retry != TABLE}


def _person_seconds(owner: Owner, request: Request) -> float:
    """How much waiting for people may add to the deadline: the log must outlive both. 0: the clock runs on."""
    limits = owner.resources.team.limits
    is_paused = limits.pause_for_people if request.pause_for_people is None else request.pause_for_people
    seconds = request.deadline_seconds or limits.deadline_seconds
    return max(0.0, min(limits.person_seconds, owner.resources.longest_deadline - seconds)) if is_paused else 0.0


def _other_models(team: Team) -> dict[str, str]:
    """The second model of each tag, where the role that has it lists one."""
    models = {role.name: role.other_model for role in team.roles if isinstance(role, ModelRole) and role.other_model}
    having = {tag: team.roles_matching((tag,)) for tag in sorted(team.tags)} if models else {}
    return {tag: models[roles[0].name] for tag, roles in having.items() if roles and roles[0].name in models}


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
    return owner.model_slot() if request.text is not None else nullcontext()
