"""Makes the plan of a request: the one that was given, a map unfolded, or a draft by a model; checked and routed.

It knows neither the log nor the lease: `steps/plan.py` records what is made here.
"""

import asyncio
from dataclasses import replace
from typing import NamedTuple

from muster_agent.budget import Limit, within_budget
from muster_agent.models.port import NOTHING, Ask, Model, PlanBrief, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_agent.output_schema import schema_mistake
from muster_agent.team.schema import Team
from muster_bus.tracing import names
from muster_bus.tracing.tracing import current, fail
from muster_protocol.counted import counted
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.fields import check_supported
from muster_protocol.messages import Request, Usage
from muster_protocol.plan import MAX_DEPENDENCIES, MAX_TASKS, Plan
from muster_protocol.unfold import unfold
from muster_supervisor.planning.briefing import NOTHING_SEEN, Seen, brief_of
from muster_supervisor.planning.draft import Draft, read_draft
from muster_supervisor.planning.lint import Finding, errors, lint
from muster_supervisor.planning.lint_growth import growth_findings
from muster_supervisor.planning.repeated import same_work
from muster_supervisor.planning.routing import route

MAX_PLAN_TOKENS = 16_384  # some 150 tasks; a longer list is better asked for as a map
ADD_LANES = "add `priorities: {}` to its team file, provision it again and restart its services"
MAX_NAMED = 10  # mistakes in the reason why there is no plan


class Unplannable(Invalid):
    """No plan could be made for the request; `usage` is what the attempts cost."""

    def __init__(self, reason: str, where: str, usage: Usage) -> None:
        super().__init__(reason, where)
        self.usage = usage


class Planned(NamedTuple):
    """The plan with a tag for every task, what it cost to make, the warnings about it, and who is the same work."""

    plan: Plan
    usage: Usage
    warnings: tuple[str, ...]
    same_work: list[tuple[str, ...]]


async def make_plan(request: Request, team: Team, model: Model, seen: Seen = NOTHING_SEEN) -> Planned:
    """The plan of a request."""
    plan, usage = await draft_plan(request, team, model, seen)
    return await _accepted(plan, request, team, usage)


async def draft_plan(request: Request, team: Team, model: Model, seen: Seen = NOTHING_SEEN) -> tuple[Plan, Usage]:
    """The plan before it is checked and routed, and what it cost to make."""
    check_supported(request)
    if request.priority != "normal" and team.priorities is None:
        raise Invalid(f"team {team.team!r} has no lanes; leave it out, or {ADD_LANES}", "priority")
    if request.answer_schema is not None and (mistake := schema_mistake(request.answer_schema)):
        raise Invalid(f"is no JSON Schema: {mistake}", "answer_schema")
    match request:
        case Request(plan=Plan() as plan):
            return plan, NOTHING
        case Request(map=over) if over is not None:
            return unfold(over), NOTHING
        case _:
            return await _by_model(request, team, model, seen)


async def _by_model(request: Request, team: Team, model: Model, seen: Seen) -> tuple[Plan, Usage]:
    """The model's plan; one with mistakes, or another number of tasks than asked for, is sent back once with all of it.

    A number that stays wrong is a warning, mistakes that stay are the end.
    """
    if request.num_tasks is not None and request.num_tasks > MAX_TASKS:
        raise Invalid(f"at most {MAX_TASKS:,} tasks", "num_tasks")
    brief = brief_of(request, team, seen)
    limit = Limit(request.budget.tokens, request.budget.usd)
    text, usage = await _draft(brief, model, NOTHING, limit)
    draft = _judged(text, request, team)
    miscounted = _miscounted(draft.plan, request)
    if draft.mistakes or miscounted:
        again = replace(brief, draft=text, mistakes=(*draft.mistakes, *miscounted))
        try:
            text, usage = await _draft(again, model, usage, limit)
        except MusterError as error:
            if draft.mistakes or draft.plan is None:
                raise
            usage = error.usage if isinstance(error, Unplannable) else usage
        else:
            draft = _better(draft, _judged(text, request, team))
    if draft.mistakes or draft.plan is None:
        raise Unplannable(f"{model.name} made no valid plan: {_named(draft.mistakes)}", "text", usage)
    return draft.plan, usage


def _better(first: Draft, second: Draft) -> Draft:
    """The second plan, unless it has mistakes that the first one had not."""
    return first if second.mistakes and not first.mistakes else second


def _named(mistakes: list[str]) -> str:
    more = f"; and {len(mistakes) - MAX_NAMED} more" if len(mistakes) > MAX_NAMED else ""
    return "; ".join(mistakes[:MAX_NAMED]) + more


async def _draft(brief: PlanBrief, model: Model, spent: Usage, limit: Limit) -> tuple[str, Usage]:
    """The model's plan as text, and what has been spent by then."""
    ask = within_budget(Ask(brief, max_tokens=MAX_PLAN_TOKENS), model, spent, limit)
    reply = await ask_with_retry(model, ask)
    try:
        return require_complete(reply).text, spent + reply.usage
    except MusterError as error:
        raise Unplannable(f"{model.name} made no plan: {error}", "text", spent + reply.usage) from error


def _judged(text: str, request: Request, team: Team) -> Draft:
    """The plan that a model wrote, and all that is wrong with it: it gets one chance to mend it."""
    draft = read_draft(text)
    if draft.plan is not None:
        draft.mistakes += [str(finding) for finding in errors(_linted(draft.plan, request, team))]
    return draft


def _miscounted(plan: Plan | None, request: Request) -> tuple[str, ...]:
    if plan is None or request.num_tasks is None or len(plan.tasks) == request.num_tasks:
        return ()
    return (f"tasks: make exactly {counted(request.num_tasks, 'task')}; this plan has {len(plan.tasks):,}",)


def _linted(plan: Plan, request: Request, team: Team) -> list[Finding]:
    tracing = current()
    with tracing.span(names.LINT, {names.TASKS: len(plan.tasks)}) as span:
        findings = lint(plan, team, request.budget, request.num_tasks, is_map=request.map is not None)
        findings = [*growth_findings(plan.tasks), *findings]
        if span is not None:
            span.set_attribute(names.FINDINGS, len(findings))
        if wrong := errors(findings):
            fail(span, "invalid", tracing.shown(str(wrong[0])))
        return findings


async def _accepted(plan: Plan, request: Request, team: Team, usage: Usage) -> Planned:
    """The plan, checked and routed; a plan with errors is refused. The requests of others get turns meanwhile."""
    await asyncio.sleep(0)  # before the checks
    findings = _linted(plan, request, team)
    await asyncio.sleep(0)  # after them
    if wrong := errors(findings):
        raise Unplannable(_together(wrong), wrong[0].where, usage)
    routed = route(plan, team)
    count = sum(len(task.dependencies) for task in routed.tasks)
    if count > MAX_DEPENDENCIES:  # a broadcast multiplies them
        text = f"{count:,} dependencies in all, with the copies of what is broadcast; the most is {MAX_DEPENDENCIES:,}"
        raise Unplannable(text, "plan.tasks", usage)
    same = [] if request.map is not None else same_work(plan)  # not of what is routed: copies of a broadcast are meant
    await asyncio.sleep(0)  # before it is recorded
    return Planned(routed, usage, tuple(str(finding) for finding in findings), same)


def _together(wrong: list[Finding]) -> str:
    first, *others = wrong
    return "; ".join([first.text, *(str(finding) for finding in others)])
