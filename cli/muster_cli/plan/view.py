"""Draws a plan as a tree, with what is odd about it and what it will take."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from muster_cli.view.plain import duration, line, plain
from muster_protocol.counted import counted
from muster_protocol.messages import Usage
from muster_protocol.plan import Plan, TaskSpec, needs_of, ordered
from muster_protocol.subjects import TaskId
from muster_supervisor.planning.estimate import Estimate
from muster_supervisor.planning.lint import Finding

if TYPE_CHECKING:
    from rich.console import Console

MAX_LINES = 200  # a longer plan is for programs
MAX_LEVELS = 12  # deeper tasks stand no further to the right
MAX_LINE = 200
MAX_NAMED = 5
STYLES = {"error": "red", "warning": "yellow"}


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as it was drafted, before it is routed; None where none could be made."""

    plan: Plan | None
    findings: list[Finding]
    estimate: Estimate | None
    usage: Usage  # of making the plan


def plan_document(view: PlanView) -> dict[str, Any]:
    """For programs; `muster submit --plan` takes it as it is."""
    return {
        "plan": view.plan.model_dump(mode="json", exclude_defaults=True) if view.plan else None,
        "findings": [asdict(finding) for finding in view.findings],
        "estimate": asdict(view.estimate) if view.estimate else None,
        "usage": view.usage.model_dump(mode="json"),
    }


def print_plan(out: "Console", view: PlanView, ending: str = "nothing was run") -> None:
    if view.plan is not None:
        if view.plan.goal:
            out.print(plain(view.plan.goal), style="bold", soft_wrap=True)
        for number, text in enumerate(tree(view.plan)):
            if number == MAX_LINES:
                out.print(f"… and {len(view.plan.tasks) - MAX_LINES:,} more: --json has all of them", style="dim")
                break
            out.print(line(text, MAX_LINE), soft_wrap=True)
        out.print(
            plain(f"then {view.plan.aggregation}: {view.plan.final_instruction or 'all results'}"), soft_wrap=True
        )
    for finding in view.findings:
        out.print(plain(f"{finding.level}: {finding}", 1000), style=STYLES[finding.level], soft_wrap=True)
    if view.estimate is not None:
        out.print(plain(in_words(view.estimate), 1000), soft_wrap=True)
    out.print(ending, style="dim")


def tree(plan: Plan) -> Iterator[str]:
    """A line for each task, below the last of those that it waits for; tasks that wait for each other stand alone."""
    below, also = _placed(plan)
    specs = {task.id: task for task in plan.tasks}
    open_lines = [("", task_id) for task_id in reversed(below.get(None, []))]
    last: set[TaskId] = {children[-1] for children in below.values()}
    while open_lines:
        indent, task_id = open_lines.pop()
        is_last = task_id in last
        yield f"{indent}{'└' if is_last else '├'} {_in_a_line(specs[task_id], also[task_id])}"
        if len(indent) < 2 * MAX_LEVELS:
            indent += "  " if is_last else "│ "
        open_lines += [(indent, child) for child in reversed(below.get(task_id, []))]


def _placed(plan: Plan) -> tuple[dict[TaskId | None, list[TaskId]], dict[TaskId, list[TaskId]]]:
    """The tasks below each one, and what else each waits for."""
    needs = needs_of(plan)
    order = {task_id: place for place, task_id in enumerate(ordered(needs))}
    below: dict[TaskId | None, list[TaskId]] = {}
    also: dict[TaskId, list[TaskId]] = {}
    for task_id, wanted in needs.items():
        above = max((need for need in wanted if need in order), key=order.__getitem__, default=None)
        above = above if task_id in order else None
        below.setdefault(above, []).append(task_id)
        also[task_id] = [need for need in dict.fromkeys(wanted) if need != above]
    return below, also


def _in_a_line(task: TaskSpec, also: list[TaskId]) -> str:
    more = f" and {len(also) - MAX_NAMED:,} more" if len(also) > MAX_NAMED else ""
    after = f"  (also after {', '.join(also[:MAX_NAMED])}{more})" if also else ""
    return f"{task.name}  [{_route(task)}]{after}  {plain(task.description, 100)}"


def _route(task: TaskSpec) -> str:
    parts = [task.tag] if task.tag else []
    parts += [" + ".join(task.match_all)] if task.match_all else []
    parts += [" | ".join(task.match_some)] if task.match_some else []
    found = ", ".join(parts)
    return f"everybody with {found}" if task.broadcast and found else "everybody" if task.broadcast else found


def in_words(estimate: Estimate) -> str:
    """What the plan will take, as far as anybody knows."""
    path = estimate.critical_path
    shown = " → ".join((*path[:MAX_NAMED], "…") if len(path) > MAX_NAMED else path)
    chain = f"longest chain {shown} ({len(path):,} of {counted(estimate.tasks, 'task')})"
    if estimate.unknown == estimate.tasks:
        return f"{chain}; nothing was measured of its roles yet, so nobody knows what it will take"
    unknown = f"; of {counted(estimate.unknown, 'task')} nothing is known" if estimate.unknown else ""
    return (
        f"about {duration(estimate.seconds)} ({duration(estimate.sequential_seconds)} one after the other), "
        f"{estimate.tokens:,.0f} tokens, ${estimate.usd:,.4f}{unknown}; {chain}"
    )
