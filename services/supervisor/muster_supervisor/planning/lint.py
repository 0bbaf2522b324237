"""What is wrong with a plan: findings, of which an error keeps it from running. Pure, and linear in the plan."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import from_json

from muster_agent.output_schema import schema_mistakes, written
from muster_agent.team.schema import FunctionRole, Team
from muster_protocol.counted import counted
from muster_protocol.fields import nearest
from muster_protocol.messages import Budget
from muster_protocol.plan import MAX_INPUTS, MAX_TASKS, AtLeast, Plan, TaskSpec, copy_id, cycle_in, needs_of
from muster_supervisor.planning.repeated import nearly_same_work, same_work
from muster_supervisor.planning.routing import Matching, is_by_name, matcher
from muster_supervisor.planning.vague import is_vague

MESSAGE_DEPTH = 8  # levels of lists and objects around inputs, in whichever message they travel
MAX_FINDINGS = 20  # errors in one answer: more would hide the first ones …
MAX_OF_A_RULE = 10  # … and those of one rule must not hide what another rule says


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say about a plan; an error keeps the plan from running, a warning does not."""

    level: Literal["error", "warning"]
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def lint(
    plan: Plan, team: Team, budget: Budget | None = None, num_tasks: int | None = None, *, is_map: bool = False
) -> list[Finding]:
    """All errors (at most twenty), then the warnings; items of a map may well be the same."""
    matching = matcher(team)
    rules = (
        _id_findings(plan),
        _cycle_findings(plan),
        _route_findings(plan, team, matching),
        _task_findings(plan, matching),
        _schema_findings(plan),
    )
    findings = [finding for found in rules for finding in found[:MAX_OF_A_RULE]]
    if not findings:
        findings = _size_findings(plan, budget or Budget(), matching)
    return [*findings[:MAX_FINDINGS], *_warnings(plan, matching, num_tasks, is_map=is_map)]


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that keep a plan from running."""
    return [finding for finding in findings if finding.level == "error"]


def _id_findings(plan: Plan) -> list[Finding]:
    """Ids that several tasks have, and dependencies on ids that no task has."""
    counts = Counter([task.id for task in plan.tasks])
    found = [
        Finding("error", f"tasks.{task_id}", f"{count} tasks have this id")
        for task_id, count in counts.items()
        if count > 1
    ]
    for task in plan.tasks:
        for need in task.dependencies:
            if need not in counts:
                help_ = nearest(need, counts) if len(found) < MAX_FINDINGS and len(counts) <= 50 else ""
                found.append(Finding("error", f"tasks.{task.id}.dependencies", f"no task has the id {need!r}{help_}"))
    return found


def _cycle_findings(plan: Plan) -> list[Finding]:
    needs = needs_of(plan)
    if not any(needs.values()):
        return []
    cycle = cycle_in({task_id: tuple(need for need in wanted if need in needs) for task_id, wanted in needs.items()})
    if not cycle:
        return []
    return [Finding("error", f"tasks.{cycle[0]}.dependencies", f"tasks wait for each other: {' → '.join(cycle)}")]


def _route_findings(plan: Plan, team: Team, matching: Matching) -> list[Finding]:
    """Tasks that no role matches; each combination of tags is checked once, however many tasks have it."""
    known = set(team.role_tags)
    faults: dict[tuple[object, ...], tuple[str, str]] = {}
    found: list[Finding] = []
    for task in plan.tasks:
        key = (task.tag, task.worker, task.match_all, task.match_some, task.broadcast)
        if key not in faults:
            faults[key] = _route_fault(task, team, known, matching)
        field, text = faults[key]
        if text:
            found.append(Finding("error", f"tasks.{task.id}{field}", text))
            if len(found) >= MAX_FINDINGS:
                break
    return found


def _route_fault(task: TaskSpec, team: Team, known: set[str], matching: Matching) -> tuple[str, str]:
    """The field and the reason why no role can get a task; both empty when a role can."""
    own = (task.tag,) if task.tag and not is_by_name(task) else ()
    tags = own + task.match_all + task.match_some
    unknown = [tag for tag in tags if tag not in known]
    if task.worker is not None and (fault := _worker_fault(task, team)):
        return ".worker", fault
    if task.tag and (task.match_all or task.match_some):
        return "", "has a tag and match lists; a task has one or the other"
    if not tags and not task.broadcast and task.worker is None:
        return "", "names no tag; give it a tag, match_all, match_some or broadcast: true"
    if unknown:
        return ".tag" if task.tag else "", f"nobody has the tag {unknown[0]!r}{nearest(unknown[0], known)}"
    if not matching(task) and (tags or task.broadcast):
        text = f"no role has all of {list(task.match_all)} and one of {list(task.match_some)}; tags: {_tags(team)}"
        return "", text
    return "", ""


def _worker_fault(task: TaskSpec, team: Team) -> str:
    """Why no worker of that name can get a task; empty when one can."""
    if task.broadcast:
        return "a broadcast goes to every matching role; leave the worker out"
    if task.worker in team.workers:
        return ""
    if not team.workers:
        return f"no worker {task.worker!r}: the team file names none; list it under workers and start it with --name"
    return f"no worker {task.worker!r}{nearest(task.worker or '', team.workers)}"


def _schema_findings(plan: Plan) -> list[Finding]:
    """Schemas that are none; each is looked at once, however many tasks have it."""
    schemas = [(task.id, task.expected_output) for task in plan.tasks if isinstance(task.expected_output, dict)]
    known = schema_mistakes((schema for _, schema in schemas), MAX_FINDINGS)
    found: list[Finding] = []
    for task_id, schema in schemas:
        if mistake := known.get(written(schema)):
            text = f"this is no JSON Schema that can be used: {mistake}"
            found.append(Finding("error", f"tasks.{task_id}.expected_output", text))
            if len(found) >= MAX_FINDINGS:
                break
    return found


def _task_findings(plan: Plan, matching: Matching) -> list[Finding]:
    """What single tasks ask for that cannot be."""
    ids = {task.id for task in plan.tasks}
    parts = {task.id: len(matching(task)) for task in plan.tasks if task.broadcast}
    parts |= {task.id: MAX_TASKS for task in plan.tasks if task.over}  # nobody knows yet how many it will be
    found: list[Finding] = []
    for task in plan.tasks:
        if task.retry is not None and task.retry.refine and _is_for_function(task, matching):
            text = "its role is a function, which is called again as it was; leave it out"
            found.append(Finding("error", f"tasks.{task.id}.retry.refine", text))
        if task.inputs and (wrong := wrong_with_inputs(task.inputs)):
            found.append(Finding("error", f"tasks.{task.id}.inputs", wrong))
        if task.gather is not None and (wrong := _wrong_with_gather(task, parts)):
            found.append(Finding("error", f"tasks.{task.id}.gather", wrong))
        if task.item_of in ids:
            text = f"{task.item_of!r} is a task of the plan; give the map another name"
            found.append(Finding("error", f"tasks.{task.id}.item_of", text))
    return found


def _is_for_function(task: TaskSpec, matching: Matching) -> bool:
    return any(isinstance(role, FunctionRole) for role in matching(task))


def wrong_with_inputs(inputs: Mapping[str, Any]) -> str:
    """Why no message can carry these inputs; empty when one can."""
    try:
        text = json.dumps(inputs, ensure_ascii=False, allow_nan=False)
        from_json(f"{'[' * MESSAGE_DEPTH}{text}{']' * MESSAGE_DEPTH}".encode())  # as deep as in a plan or a task
    except (TypeError, ValueError, RecursionError) as error:
        return f"cannot be sent as JSON: {error}"
    if len(text) > MAX_INPUTS:
        return f"{len(text):,} characters of JSON; the most is {MAX_INPUTS:,}: name the place where it can be read"
    return ""


def _wrong_with_gather(task: TaskSpec, parts: Mapping[str, int]) -> str:
    count = sum(parts.get(name, 1) for name in set(task.dependencies))
    if not count:
        return "it depends on nothing that could be gathered"
    if isinstance(task.gather, AtLeast) and task.gather.at_least > count:
        return f"at least {task.gather.at_least:,} are to be done, but it depends on {count:,}"
    return ""


def _tags(team: Team) -> str:
    return "; ".join(f"{role.name} = {', '.join(role.tags)}" for role in team.roles)


def _size_findings(plan: Plan, budget: Budget, matching: Matching) -> list[Finding]:
    """Too many tasks, or one id twice, counted after broadcasts are unfolded: the copies are what runs."""
    ids = [task.id for task in plan.tasks if not task.broadcast]
    ids += [copy_id(task.id, role.name) for task in plan.tasks if task.broadcast for role in matching(task)]
    most = min(MAX_TASKS, budget.tasks or MAX_TASKS)
    if len(ids) > most:
        return [Finding("error", "tasks", f"the plan has {len(ids):,} tasks; the request may have {most:,}")]
    twice = [task_id for task_id, count in Counter(ids).items() if count > 1] if len(set(ids)) < len(ids) else []
    return [
        Finding("error", f"tasks.{task_id}", "a copy of a broadcast gets this id, which another task has already")
        for task_id in twice
    ]


def _warnings(plan: Plan, matching: Matching, num_tasks: int | None, *, is_map: bool) -> list[Finding]:
    found: list[Finding] = []
    if num_tasks is not None and len(plan.tasks) != num_tasks:
        asked = f"{counted(num_tasks, 'task')} {'was' if num_tasks == 1 else 'were'}"
        found.append(Finding("warning", "tasks", f"{asked} asked for, the plan has {len(plan.tasks)}"))
    described = [task for task in plan.tasks if _is_told_by_words(task, matching)]
    if vague := [task.id for task in described if is_vague(task.description)]:
        found.append(Finding("warning", "tasks", f"vague descriptions, say what exactly: {_listed(vague)}"))
    if is_map:
        return found
    same = same_work(plan)
    if repeated := [task_id for group in same for task_id in group[1:]]:
        found.append(Finding("warning", "tasks", f"the same work as an earlier task: {_listed(repeated)}"))
    nearly = [group for group in nearly_same_work(plan, described) if not _is_within(group, same)]
    if nearly:
        groups = [" = ".join(group) for group in nearly]
        found.append(Finding("warning", "tasks", f"nearly the same work, say what differs: {_listed(groups)}"))
    return found


def _is_told_by_words(task: TaskSpec, matching: Matching) -> bool:
    """Whether all that a task is about stands in its description: neither in inputs, nor in a function's code."""
    roles = matching(task)
    return not task.inputs and not (roles and all(isinstance(role, FunctionRole) for role in roles))


def _is_within(group: tuple[str, ...], groups: Iterable[tuple[str, ...]]) -> bool:
    return any(set(group) <= set(other) for other in groups)


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - 5:,} more" if len(ids) > 5 else ""
    return ", ".join(ids[:5]) + more
