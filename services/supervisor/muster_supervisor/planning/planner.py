"""Makes the plan of a request: the one that was given, a map unfolded, or a draft by a model; checked and routed.

It knows neither the log nor the lease: `steps/plan.py` records what is made here.
"""

from dataclasses import replace
from typing import Any, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from muster_agent.budget import Limit, within_budget
from muster_agent.models.port import NOTHING, Ask, Model, PlanBrief, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_agent.team.schema import Team
from muster_bus.tracing import names
from muster_bus.tracing.tracing import current, fail
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.fields import check_supported
from muster_protocol.messages import Request, Usage
from muster_protocol.plan import MAX_DEPENDENCIES, MAX_TASKS, Plan, TaskSpec
from muster_protocol.unfold import unfold
from muster_supervisor.planning.lint import Finding, errors, lint
from muster_supervisor.planning.lint_growth import growth_findings
from muster_supervisor.planning.repeated import same_work
from muster_supervisor.planning.routing import route

MAX_PLAN_TOKENS = 16_384  # some 150 tasks; a longer list is better asked for as a map


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


async def make_plan(request: Request, team: Team, model: Model) -> Planned:
    """The plan of a request."""
    plan, usage = await draft_plan(request, team, model)
    return _accepted(plan, request, team, usage)


async def draft_plan(request: Request, team: Team, model: Model) -> tuple[Plan, Usage]:
    """The plan before it is checked and routed, and what it cost to make."""
    check_supported(request)
    match request:
        case Request(plan=Plan() as plan):
            return plan, NOTHING
        case Request(map=over) if over is not None:
            return unfold(over), NOTHING
        case _:
            return await _by_model(request, team, model)


async def _by_model(request: Request, team: Team, model: Model) -> tuple[Plan, Usage]:
    """The model's plan; one that breaks a rule is sent back once, with what is wrong."""
    if request.num_tasks is not None and request.num_tasks > MAX_TASKS:
        raise Invalid(f"at most {MAX_TASKS:,} tasks", "num_tasks")
    brief = PlanBrief(
        text=request.text or "",
        roles=team.cards,
        persona=team.supervisor.persona,
        num_tasks=request.num_tasks,
        max_tasks=request.budget.tasks,
    )
    limit = Limit(request.budget.tokens, request.budget.usd)
    draft, usage = await _draft(brief, model, NOTHING, limit)
    mistakes = _mistakes(draft, request, team)
    if mistakes:
        again = replace(brief, draft=draft, mistakes=tuple(mistakes))
        draft, usage = await _draft(again, model, usage, limit)
        if mistakes := _mistakes(draft, request, team):
            raise Unplannable(f"{model.name} made no valid plan: {'; '.join(mistakes[:5])}", "text", usage)
    return Plan.model_validate_json(draft), usage


async def _draft(brief: PlanBrief, model: Model, spent: Usage, limit: Limit) -> tuple[str, Usage]:
    """The model's plan as text, and what has been spent by then."""
    ask = within_budget(Ask(brief, max_tokens=MAX_PLAN_TOKENS), model, spent, limit)
    reply = await ask_with_retry(model, ask)
    try:
        return require_complete(reply).text, spent + reply.usage
    except MusterError as error:
        raise Unplannable(f"{model.name} made no plan: {error}", "text", spent + reply.usage) from error


def _mistakes(draft: str, request: Request, team: Team) -> list[str]:
    """All that is wrong with a draft, in words for the model: it gets one chance to mend it."""
    try:
        plan, found = Plan.model_validate_json(draft), list[str]()
    except ValidationError as error:
        plan, found = _readable_part(draft), [_in_words(wrong) for wrong in error.errors(include_url=False)[:20]]
    return [*found, *(str(finding) for finding in errors(_linted(plan, request, team)))] if plan else found


def _in_words(wrong: ErrorDetails) -> str:
    return f"{'.'.join(str(part) for part in wrong['loc'])}: {wrong['msg']}"


def _linted(plan: Plan, request: Request, team: Team) -> list[Finding]:
    tracing = current()
    with tracing.span(names.LINT, {names.TASKS: len(plan.tasks)}) as span:
        findings = lint(plan, team, request.budget, request.num_tasks, is_map=request.map is not None)
        findings = [*growth_findings(plan), *findings]
        if span is not None:
            span.set_attribute(names.FINDINGS, len(findings))
        if wrong := errors(findings):
            fail(span, "invalid", tracing.shown(str(wrong[0])))
        return findings


def _accepted(plan: Plan, request: Request, team: Team, usage: Usage) -> Planned:
    """The plan, checked and routed; a plan with errors is refused."""
    findings = _linted(plan, request, team)
    if wrong := errors(findings):
        raise Unplannable(_together(wrong), wrong[0].where, usage)
    routed = route(plan, team)
    count = sum(len(task.dependencies) for task in routed.tasks)
    if count > MAX_DEPENDENCIES:  # a broadcast multiplies them
        text = f"{count:,} dependencies in all, with the copies of what is broadcast; the most is {MAX_DEPENDENCIES:,}"
        raise Unplannable(text, "plan.tasks", usage)
    same = [] if request.map is not None else same_work(plan)  # not of what is routed: copies of a broadcast are meant
    return Planned(routed, usage, tuple(str(finding) for finding in findings), same)


def _together(wrong: list[Finding]) -> str:
    first, *others = wrong
    return "; ".join([first.text, *(str(finding) for finding in others)])


def _readable_part(draft: str) -> Plan | None:
    """A plan of the tasks that can be read, without what they need of the others; None if there is none."""
    try:
        fields = from_json(draft)
        listed = cast("dict[str, Any]", fields)["tasks"][:MAX_TASKS]
    except (ValueError, TypeError, KeyError):
        return None
    broken: set[str] = set()
    tasks = [task for one in listed if (task := _readable(one, broken)) is not None]
    if not tasks:
        return None
    kept = [
        task.model_copy(update={"dependencies": tuple(need for need in task.dependencies if need not in broken)})
        for task in tasks
    ]
    return Plan.model_construct(goal="", tasks=tuple(kept))


def _readable(fields: object, broken: set[str]) -> TaskSpec | None:
    """The task, or nothing; the id of one that is broken is remembered."""
    try:
        return TaskSpec.model_validate(fields)
    except ValidationError:
        if isinstance(fields, dict):
            broken.add(str(cast("dict[str, Any]", fields).get("id")))
        return None
