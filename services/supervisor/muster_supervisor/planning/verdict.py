"""Reads what a model says about a plan that may grow, with all that is wrong with it. Pure.

The new tasks are read, checked and routed like those of a plan. What else they depend on is there, so they may not
wait for what never will be, nor do again what is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import from_json

from muster_agent.team.schema import Team
from muster_protocol.counted import counted
from muster_protocol.fields import nearest
from muster_protocol.fold import RequestState, TaskPhase, fault_of
from muster_protocol.fold.moves import LOST
from muster_protocol.messages import Extended
from muster_protocol.messages.growth import REVIEW, kind_of
from muster_protocol.plan import TaskSpec
from muster_supervisor.planning.draft import bare, read_draft
from muster_supervisor.planning.lint_growth import errors_of_added
from muster_supervisor.planning.routing import route
from muster_supervisor.planning.standing import MAX_MORE, skipped_for

WORDS = {True: ("finish", "more"), False: ("keep", "replace")}  # of a review, and of a failure
MAX_MISTAKES = 20  # more would hide the first ones
MAX_REASON = 500  # characters: two sentences that people read


@dataclass(slots=True)
class Verdict:
    """By what the plan is to grow, why, and what is wrong with that."""

    add: tuple[TaskSpec, ...] = ()
    drop: tuple[str, ...] = ()
    reason: str = ""
    mistakes: list[str] = field(default_factory=list[str])


def read_verdict(text: str, state: RequestState, cause: str, team: Team) -> Verdict:
    """What the model says for a cause."""
    try:
        raw: object = from_json(bare(text))
    except ValueError as error:
        return Verdict(mistakes=[f"the reply is not JSON: {error}"])
    fields = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    nothing, something = WORDS[kind_of(cause) == REVIEW]
    said, tasks, drop = fields.get("verdict"), _listed(fields, "tasks"), _listed(fields, "drop")
    verdict = Verdict(reason=" ".join(str(fields.get("reason") or "").split())[:MAX_REASON])
    if said == nothing:
        if tasks or drop:
            verdict.mistakes.append(f"verdict: {nothing} has no tasks; leave them out, or say {something}")
    elif said != something:
        verdict.mistakes.append(f"verdict: say {nothing} or {something}, not {said!r}")
    elif not tasks:
        verdict.mistakes.append(f"tasks: {something} names at least one task; say {nothing} if there is none")
    else:
        verdict.drop = tuple(str(name) for name in drop)
        _read_tasks(verdict, text, state, cause, team)
    return verdict


def _listed(fields: dict[str, Any], name: str) -> list[object]:
    value: object = fields.get(name)
    return cast("list[object]", value) if isinstance(value, list) else []


def _read_tasks(verdict: Verdict, text: str, state: RequestState, cause: str, team: Team) -> None:
    """The new tasks, if they can be read; else what keeps them from it."""
    draft = read_draft(text)
    found = draft.mistakes
    if draft.plan is not None:
        plan = draft.plan.model_copy(update={"tasks": tuple(_with_parts(spec, state) for spec in draft.plan.tasks)})
        found += [fault for spec in plan.tasks for fault in _faults_of(spec, plan.tasks, state)]
        found += [str(finding) for finding in errors_of_added(plan.tasks, team)]
        if not found:
            verdict.add = route(plan, team).tasks
            found += _beyond(verdict, state, cause)
    verdict.mistakes += found[:MAX_MISTAKES]


def _with_parts(spec: TaskSpec, state: RequestState) -> TaskSpec:
    """The same task; where it names a map or a broadcast that there was, it needs all items or copies of that."""
    if all(name in state.tasks for name in spec.dependencies):
        return spec
    needs: list[str] = []
    for name in spec.dependencies:
        parts = [] if name in state.tasks else _parts_of(name, state)
        needs += parts or [name]
    return spec.model_copy(update={"dependencies": tuple(dict.fromkeys(needs))})


def _parts_of(name: str, state: RequestState) -> list[str]:
    specs = [task.spec for task in state.tasks.values()]
    return [spec.id for spec in specs if name in (spec.item_of, spec.copy_of)]


def _faults_of(spec: TaskSpec, new: Sequence[TaskSpec], state: RequestState) -> list[str]:
    """What keeps one new task from running beside those that there are."""
    found: list[str] = []
    if spec.id in state.tasks or spec.id in state.dropped:
        found.append(f"tasks.{spec.id}.id: there is a task of this id; give the new one another")
    ids = {each.id for each in new}
    for name in spec.dependencies:
        if name in ids:
            continue
        if name not in state.tasks:
            help_ = nearest(name, ids | state.tasks.keys()) if len(state.tasks) <= MAX_MORE else ""
            found.append(f"tasks.{spec.id}.dependencies: no task has the id {name!r}{help_}")
        elif state.tasks[name].phase in LOST:
            phase = state.tasks[name].phase.value
            found.append(f"tasks.{spec.id}.dependencies: {name} is {phase} and gives nothing; this would never begin")
    if same := _same(spec, state):
        found.append(f"tasks.{spec.id}.description: {same}")
    return found


def _same(spec: TaskSpec, state: RequestState) -> str:
    """Which task has done this already, or has failed at it; empty when none has."""
    work = _work_of(spec)
    for name, task in state.tasks.items():
        if task.phase is TaskPhase.DONE and _work_of(task.spec) == work:
            return f"{name} has done the same; its output is there"
        is_tried = task.phase is TaskPhase.FAILED and spec.tag in (task.spec.tag, *task.tried)
        if is_tried and _work_of(task.spec) == work:
            return f"{name} was the same for the same worker, and failed; ask another one, or for something else"
    return ""


def _work_of(spec: TaskSpec) -> tuple[object, ...]:
    """What makes two tasks the same work, whoever does it."""
    return _plain(spec.description), spec.inputs, frozenset(spec.dependencies)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _beyond(verdict: Verdict, state: RequestState, cause: str) -> list[str]:
    """Which bound the routed tasks go beyond."""
    failed = state.growing.get(cause, "")
    most = MAX_MORE if kind_of(cause) == REVIEW else MAX_MORE + len(skipped_for(state, failed) if failed else ())
    if len(verdict.add) > most:
        return [f"tasks: at most {counted(most, 'task')} at once; these are {len(verdict.add):,}"]
    if cause not in state.growing:
        return []
    fault = fault_of(state, Extended(cause=cause, add=verdict.add, drop=verdict.drop))
    return [] if fault is None else [fault.message]
