"""How a plan grows by rules: a question that a result leaves open is asked, a failed task goes to somebody who fits.

A question is open where a line of a result begins with `Open question:`. It is asked once, of the role that fits best.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from muster_agent.models.offline.fit import best, fits, stages_of
from muster_agent.models.offline.grid import new_id
from muster_agent.models.standing import ReplaceBrief, ReviewBrief, Standing, TaskShown
from muster_protocol.counted import counted
from muster_protocol.plan import TaskSpec
from muster_protocol.workers.role_card import RoleCard

_OPEN = re.compile(r"^[\s>*_-]*open question:[\s*_]*(?P<question>\S.*?)[\s*_]*$", re.IGNORECASE | re.MULTILINE)
Verdict = dict[str, Any]  # as ReviewDraft and ReplaceDraft of the prompts


def review_by_rules(brief: ReviewBrief) -> Verdict:
    """One more task for each question that is open, as long as there is room."""
    standing = brief.standing
    specs = [task.spec for task in standing.tasks]
    tasks: list[TaskSpec] = []
    for question, asker in list(_open_questions(standing))[: standing.room.tasks]:
        name = new_id("answer", [*specs, *tasks])
        tag = best(question, stages_of(standing.roles)).role.name
        tasks.append(TaskSpec(id=name, description=question, tag=tag, dependencies=(asker,)))
    if not tasks:
        return {"verdict": "finish", "reason": "no result states an open question", "tasks": []}
    asked = " ".join(task.description for task in tasks)
    reason = f"{counted(len(tasks), 'question')} left open: {asked}"
    return {"verdict": "more", "reason": reason, "tasks": _written(tasks)}


def replace_by_rules(brief: ReplaceBrief) -> Verdict:
    """The failed task once more at another role that fits, and on it what was skipped; else the gap stays."""
    standing = brief.standing
    shown = {task.spec.id: task for task in standing.tasks}
    failed = shown.get(brief.failed)
    other = None if failed is None else _other(failed.spec, brief.tried, standing.roles)
    if failed is None or other is None:
        return _kept("no other role fits its words and has its tools")
    specs = [task.spec for task in standing.tasks]
    tasks = [_again(failed.spec, {}, specs, other.name)]
    new = {brief.failed: tasks[0].id}
    for spec in specs:  # in the order of the plan, as often as one of them can be built on another
        if spec.id in brief.skipped and _can_be_done(spec, new, shown):
            tasks.append(_again(spec, new, [*specs, *tasks]))
            new[spec.id] = tasks[-1].id
    if len(tasks) == 1:
        return _kept("what was skipped needs more than this task")
    if len(tasks) > standing.room.tasks:
        return _kept(f"{counted(len(tasks), 'task')} would take its place, more than the plan may grow by")
    drop = _dropped(specs, [name for name in new if name != brief.failed])
    reason = f"{brief.failed} failed as {', '.join(brief.tried)}; {other.name} is asked in its place"
    return {"verdict": "replace", "reason": reason, "drop": drop, "tasks": _written(tasks)}


def _kept(reason: str) -> Verdict:
    return {"verdict": "keep", "reason": reason, "drop": [], "tasks": []}


def _written(tasks: Sequence[TaskSpec]) -> list[dict[str, Any]]:
    return [task.model_dump(mode="json", exclude_defaults=True) for task in tasks]


def _open_questions(standing: Standing) -> Iterator[tuple[str, str]]:
    """Each question that no task has asked yet, with the task that leaves it open."""
    known = [_plain(task.spec.description) for task in standing.tasks]
    for task in standing.tasks:
        for text in _texts(task.output) if task.status == "done" else ():
            for found in _OPEN.finditer(text):
                question = " ".join(found["question"].split())
                if not any(_plain(question) in asked for asked in known):
                    known.append(_plain(question))
                    yield question, task.spec.id


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _texts(output: object) -> Iterator[str]:
    """Every text in an output, however deep."""
    left = [output]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(reversed(cast("dict[str, object]", value).values()))
        elif isinstance(value, list):
            left.extend(reversed(cast("list[object]", value)))


def _other(failed: TaskSpec, tried: Collection[str], roles: Sequence[RoleCard]) -> RoleCard | None:
    """The role that knows most about a task's words and has the tools of those that failed."""
    before = [role for role in roles if role.name in tried]
    tools = {tool for role in before for tool in role.tools}
    scores = fits(failed.description, roles)
    found = [
        role
        for role in roles
        if role not in before
        and tools <= set(role.tools)
        and scores[role.name] > 0
        and all(role.is_function == other.is_function for other in before)
    ]
    return max(found, key=lambda role: scores[role.name], default=None)


def _can_be_done(spec: TaskSpec, new: Mapping[str, str], shown: Mapping[str, TaskShown]) -> bool:
    """Whether all that a skipped task needs is done, may still be, or is done anew."""
    needs = [name for name in spec.dependencies if name not in new]
    lost = [name for name in needs if name not in shown or shown[name].status in ("failed", "skipped")]
    return len(needs) < len(spec.dependencies) and not lost


def _dropped(specs: Sequence[TaskSpec], wanted: Sequence[str]) -> list[str]:
    """Those of these tasks that nobody needs who stays."""
    gone = set(wanted)
    while kept := {need for spec in specs if spec.id not in gone for need in spec.dependencies} & gone:
        gone -= kept
    return [name for name in wanted if name in gone]


def _again(spec: TaskSpec, new: Mapping[str, str], known: Sequence[TaskSpec], tag: str | None = None) -> TaskSpec:
    """The same task under a new id, on what takes the place of what it needed."""
    alone = {"match_all": (), "match_some": (), "roles": (), "worker": None, "model": None} if tag else {}
    update: dict[str, Any] = {
        **alone,
        "id": new_id(spec.id, known),
        "tag": tag or spec.tag,
        "dependencies": tuple(new.get(name, name) for name in spec.dependencies),
        "over": new.get(spec.over, spec.over) if spec.over else None,
        "item_of": None,
        "copy_of": None,
    }
    return spec.model_copy(update=update)
