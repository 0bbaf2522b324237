"""How a task gathers what it depends on: how much of it must be done, and what the task is given of it.

A task may depend on single tasks and on parts: items of a map, copies of a broadcast. `gather` says how many of them
all must be done: `all`, `done` (one at least) or `{at_least: n}`. Where it is not said, it is `done` for parts and
`all` for single tasks. What may be missing is waited for all the same; once it has failed, it is a gap and no reason
to skip. What a task spawned is a part as well, for those that wait for the task: each of these is given under its own
id, as the task itself is, which is the one part that is done already. Who names one as a dependency needs it.
"""

from collections.abc import Mapping
from typing import Any, cast

from muster_protocol.fold.state import RequestState, TaskPhase, TaskState
from muster_protocol.messages import Output
from muster_protocol.plan import AtLeast
from muster_protocol.unfold import label_of

_ITEM, _COPY = {"item", "status", "output"}, {"status", "output"}


def may_lack(task: TaskState, needed: TaskState) -> bool:
    """Whether a task can do without one of those that it depends on, as long as enough others are done."""
    gather = task.spec.gather
    if task.spec.over == needed.spec.id:
        return False  # without it there is no list
    if gather is None:
        return needed.spec.item_of is not None or needed.spec.copy_of is not None or needed.spec.id in task.also
    return gather != "all"


def parts_of(state: RequestState, task: TaskState) -> int:
    """How many of those that it depends on may each be missing; a list that was unfolded is its items.

    Who spawned some of them counts as one: it is done, and so they all may be missing.
    """
    needed = [state.tasks[name] for name in dict.fromkeys(task.spec.dependencies)]
    spawners = bool(task.also) and task.spec.gather is None
    return sum(may_lack(task, each) for each in needed if each.unfolded is None) + spawners


def most_lacking(task: TaskState, parts: int) -> int:
    """How many it can do without, of so many that may each be missing."""
    gather = task.spec.gather
    return max(0, parts - (gather.at_least if isinstance(gather, AtLeast) else 1))


def context_of(state: RequestState, task: TaskState) -> dict[str, Output]:
    """What a task is given: outputs by the id of their task, of a map a list in the order of its items, of a broadcast
    an object by role."""
    context: dict[str, Any] = {}
    for name in dict.fromkeys(task.spec.dependencies):
        needed = state.tasks[name]
        spec, output = needed.spec, needed.output
        if spec.item_of is not None:
            part = {"item": spec.inputs.get("item"), "status": _status(needed), "output": output}
            context.setdefault(spec.item_of, []).append(part)
        elif spec.copy_of is not None:
            copies = context.setdefault(spec.copy_of, {})
            key = name if spec.tag is None or spec.tag in copies else spec.tag  # a person may have moved one to another
            copies[key] = {"status": _status(needed), "output": output}
        elif needed.unfolded is not None:
            context.setdefault(name, [])
        elif needed.phase is TaskPhase.DONE:
            context[name] = output
    return context


def spread(context: Mapping[str, Output]) -> dict[str, Output]:
    """The same for whoever reads: each item and each copy by itself, under what people call it."""
    outputs: dict[str, Output] = {}
    for name, value in context.items():
        parts = _parts(name, value)
        for place, (label, part) in enumerate(parts, 1):
            is_done = part["status"] == "done"
            unique = label if label and label not in outputs else f"{label} ({place})".strip()
            outputs[unique] = part["output"] if is_done else f"missing: {part['status']}"
        if not parts:
            outputs[name] = value
    return outputs


def _parts(name: str, value: object) -> list[tuple[str, dict[str, Any]]]:
    """The items or copies that a value consists of, each with its label; none if it is an output."""
    if isinstance(value, list) and all(_has_fields(part, _ITEM) for part in cast("list[object]", value)):
        return [(label_of(part["item"]), part) for part in cast("list[dict[str, Any]]", value)]
    if isinstance(value, dict):
        copies = cast("dict[str, Any]", value)
        if all(_has_fields(part, _COPY) for part in copies.values()):
            return [(f"{name} by {role}", part) for role, part in copies.items()]
    return []


def _has_fields(part: object, fields: set[str]) -> bool:
    return isinstance(part, dict) and cast("dict[str, Any]", part).keys() == fields


def _status(task: TaskState) -> str:
    return task.outcome()["status"].value
