"""Reads the plan that a model wrote, with all that is wrong with it. Pure.

It is read as `PlanDraft` in muster_agent's prompts describes it: JSON in texts for what a strict schema cannot say, and
a task with `items` for a map. A plan in the words of the protocol is read as well.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from muster_protocol.errors import Invalid
from muster_protocol.plan import MAX_TASKS, Plan, TaskSpec
from muster_protocol.subjects import as_id
from muster_protocol.unfold import MapOver, Template, unfold

Fields = dict[str, Any]
NOT_SAID: tuple[object, ...] = ("", [], None)  # what a model writes where it has nothing to say
MAX_MISTAKES = 20  # of what cannot be read: more would hide the first ones


@dataclass(slots=True)
class Draft:
    """What could be read of a plan, and what is wrong with the rest."""

    plan: Plan | None
    mistakes: list[str]


@dataclass(frozen=True, slots=True)
class _Read:
    """One entry of the list of tasks: what it becomes, nothing if it cannot be read."""

    id: str
    tasks: tuple[TaskSpec, ...] = ()


def read_draft(text: str) -> Draft:
    """The plan of the tasks that can be read, without what they need of the others."""
    try:
        raw: object = from_json(bare(text))
    except ValueError as error:
        return Draft(None, [f"the plan is not JSON: {error}"])
    fields = cast("Fields", raw) if isinstance(raw, dict) else {}
    listed: object = fields.get("tasks")
    if not isinstance(listed, list) or not listed:
        return Draft(None, ["tasks: a plan is a JSON object with a list of at least one task"])
    mistakes: list[str] = []
    entries = cast("list[object]", listed)[:MAX_TASKS]
    read = [_read(entry, f"tasks.{number}", mistakes) for number, entry in enumerate(entries)]
    tasks = _connected(read)
    return Draft(_plan({**fields, "tasks": tasks}, mistakes), mistakes[:MAX_MISTAKES])


def bare(text: str) -> str:
    """A reply without the code fence that a model may put around it."""
    return text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")


def _plan(fields: Fields, mistakes: list[str]) -> Plan | None:
    try:
        return Plan.model_validate({name: value for name, value in fields.items() if value not in NOT_SAID})
    except ValidationError as error:
        if fields["tasks"]:
            mistakes += [_in_words(wrong) for wrong in error.errors(include_url=False)]
        return Plan.model_construct(goal="", tasks=tuple(fields["tasks"])) if fields["tasks"] else None


def _read(entry: object, where: str, mistakes: list[str]) -> _Read:
    """One task, or one for each of its items."""
    if not isinstance(entry, dict):
        mistakes.append(f"{where}: a task is a JSON object")
        return _Read("")
    raw = cast("Fields", entry)
    found: list[str] = []
    fields = _in_our_words(raw, found)
    items = fields.pop("items", [])
    spec: TaskSpec | None = None
    try:
        spec = TaskSpec.model_validate(fields)
    except ValidationError as error:
        found += [_in_words(wrong) for wrong in error.errors(include_url=False)]
    tasks = _unfolded(spec, items, found) if spec is not None else ()
    mistakes += [f"{where}.{text}" for text in found]
    return _Read(str(raw.get("id")), tasks)


def _in_our_words(raw: Fields, mistakes: list[str]) -> Fields:
    """The fields of a draft as those of a task; what is left empty is not said."""
    fields = {name: value for name, value in raw.items() if value not in NOT_SAID}
    if isinstance(inputs := fields.get("inputs"), str):
        fields["inputs"] = _json(inputs, "inputs", mistakes)
    schema = fields.pop("output_schema", None)
    if schema is not None:
        fields["expected_output"] = _json(schema, "output_schema", mistakes)
    at_least = fields.pop("at_least", 0)
    if at_least:
        fields["gather"] = {"at_least": at_least}
    return fields


def _json(text: object, name: str, mistakes: list[str]) -> Any:
    """The JSON object in a text."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        mistakes.append(f"{name}: not JSON: {error}")
        return {}
    if not isinstance(value, dict):
        mistakes.append(f"{name}: not a JSON object")
        return {}
    return cast("Fields", value)


def _unfolded(spec: TaskSpec, items: object, mistakes: list[str]) -> tuple[TaskSpec, ...]:
    """The task itself, or a copy of it for each item: they are a map of the name that it had."""
    if not items:
        return (spec,)
    try:
        template = Template(
            description=spec.description, tag="any", inputs=spec.inputs, expected_output=spec.expected_output
        )
        values = [_value(item) for item in cast("list[object]", items)]
        unfolded = unfold(MapOver(template=template, items=tuple(values))).tasks
    except ValidationError as error:
        mistakes += [
            f"items: {wrong['msg'].removeprefix('Value error, ')}" for wrong in error.errors(include_url=False)
        ]
        return (spec,)
    except Invalid as error:
        mistakes.append(f"items: {error}")
        return (spec,)
    taken = ("label", "description", "inputs", "expected_output")
    return tuple(
        spec.model_copy(
            update={
                **{name: getattr(task, name) for name in taken},
                "id": as_id(f"{spec.id}-{number}"),
                "item_of": spec.id,
            }
        )
        for number, task in enumerate(unfolded, 1)
    )


def _value(item: object) -> object:
    """An item: an object or a list in a text is that, any other text is itself."""
    if isinstance(item, str) and item[:1] in ("{", "["):
        try:
            return json.loads(item)
        except ValueError:
            return item
    return item


def _connected(read: list[_Read]) -> list[TaskSpec]:
    """All tasks; who depends on a map depends on its items, and on nothing that could not be read."""
    parts = {each.id: tuple(task.id for task in each.tasks) for each in read if each.tasks}
    broken = {each.id for each in read if not each.tasks}
    known: dict[tuple[str, ...], tuple[str, ...]] = {}  # the items of a map have their dependencies in common

    def needs(dependencies: tuple[str, ...]) -> tuple[str, ...]:
        if dependencies not in known:
            kept = [need for need in dependencies if need not in broken or need in parts]
            known[dependencies] = tuple(new for need in kept for new in parts.get(need, (need,)))
        return known[dependencies]

    tasks = [task for each in read for task in each.tasks]
    return [task.model_copy(update={"dependencies": needs(task.dependencies)}) for task in tasks]


def _in_words(wrong: ErrorDetails) -> str:
    return f"{'.'.join(str(part) for part in wrong['loc'])}: {wrong['msg']}"
