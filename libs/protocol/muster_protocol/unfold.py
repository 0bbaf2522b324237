"""One template over many items, of a map or of a task that goes over a list, and how it unfolds. An item is any JSON.

`{item}` in a text of the template stands for the item, `{item.field}` for a field of it, as deep as need be; `{{item}}`
is the text itself. A text that is nothing but one of these becomes the value, not its text. What a template asks for
and no item can give is refused: a task that says `{itm}` would do the wrong work and call it done.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, cast

from pydantic import AliasChoices, Field, ValidationError, model_validator

from muster_protocol.errors import Invalid
from muster_protocol.plan import MAX_TASKS, Frozen, Gather, Plan, Retry, TaskSpec
from muster_protocol.subjects import Tag, as_id

ITEMS = "items"  # the name under which a map's dependents find its items
MAX_UNFOLDED = 32 * 1024 * 1024  # characters: half a megabyte of map must not become gigabytes
MAX_LABEL = 40  # characters: it is the heading of a paragraph, and a column of a table
_NAMING = ("name", "title", "label", "id", "key")  # the fields by which people call a thing, best first
_NAME = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")

Fill = Mapping[str, Any]  # what each name of a template stands for, such as `item.price`


class Template(Frozen):
    """What each item of a map becomes: `{item}` in its texts stands for it."""

    description: str = Field(min_length=1)
    tag: Tag = Field(validation_alias=AliasChoices("tag", "worker_type"))
    inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    expected_output: str | dict[str, Any] | None = None
    timeout_seconds: float | None = Field(default=None, gt=0)
    max_attempts: int | None = Field(default=None, ge=1, le=10)
    retry: Retry | None = None


class Reduce(Template):
    """The task that sees the results of all items."""

    gather: Gather | None = None


class MapOver(Frozen):
    """One template over many items, optionally followed by one task that sees all results."""

    template: Template
    items: tuple[Any, ...] = Field(min_length=1, max_length=MAX_TASKS - 1)
    reduce: Reduce | None = None

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        if wrong := wrong_with_template(self.template):
            raise ValueError(f"template{wrong}")
        return self


def wrong_with_template(template: "Template | TaskSpec") -> str:
    """Why a template makes no sense, beginning with the field that is wrong; empty when it does."""
    names = list(_names_in(template))
    wrong = next((name for name in names if name.partition(".")[0] != "item"), None)
    if wrong is not None:
        return (
            f": nothing has the name {{{wrong}}}; there are {{item}} and {{item.field}}, "
            f"and {{{{{wrong}}}}} is the text itself"
        )
    if not names:
        return (
            ": {item} stands nowhere, so that all tasks would be the same; "
            "write {item} or {item.field} into the description"
        )
    return ".inputs.item: is the item itself; give this one another name" if "item" in template.inputs else ""


def unfold(over: MapOver, goal: str = "") -> Plan:
    """The plan of a map: `item-1` … `item-n`, then `reduce`. Each task has its item as `inputs.item`, and a label."""
    filled = _filled_in(over.template, over.items, "map", "map.items")
    tasks = [
        _task(over.template, item, fill, f"item-{number}", label)
        for number, (item, fill, label) in enumerate(filled, 1)
    ]
    if over.reduce is not None:
        fields = {name: getattr(over.reduce, name) for name in Reduce.model_fields}
        tasks.append(TaskSpec(id="reduce", dependencies=tuple(task.id for task in tasks), **fields))
    return Plan(goal=goal or over.template.description, tasks=tuple(tasks))


def unfold_over(spec: TaskSpec, items: Sequence[Any], name: str = "") -> tuple[TaskSpec, ...]:
    """The tasks `<id>-1` … `<id>-n` of a task that goes over a list; they wait for what else it depends on."""
    needs = tuple(need for need in spec.dependencies if need != spec.over)
    wanted, tasks = spec.expected_output, list[TaskSpec]()
    for number, (item, fill, label) in enumerate(_filled_in(spec, items, spec.id, name or f"{spec.over}.output"), 1):
        if not (description := _filled(spec.description, fill)):
            raise Invalid(f"{label!r} leaves nothing of the description", spec.id)
        update: dict[str, Any] = {
            "id": as_id(f"{spec.id}-{number}"),
            "label": label,
            "item_of": spec.id,
            "over": None,
            "description": description,
            "inputs": {**_value_filled(spec.inputs, fill), "item": item},
            "expected_output": _filled(wanted, fill) if isinstance(wanted, str) else wanted,
            "dependencies": needs,
            "gather": spec.gather if needs else None,
        }
        tasks.append(spec.model_copy(update=update))
    return tuple(tasks)


def _filled_in(
    template: "Template | TaskSpec", items: Sequence[Any], where: str, name: str
) -> list[tuple[Any, Fill, str]]:
    """Each item with what the names of the template stand for, and its label; too much text is refused."""
    names, texts = set(_names_in(template)), list(_texts_in(template))
    labels = _labels(items)
    filled: list[tuple[Any, Fill, str]] = []
    size = 0
    for number, item in enumerate(items):
        fill = {each: _value(item, each, f"{name}.{number}") for each in names}
        size += sum(_length(text, fill) for text in texts) + len(_text(item))
        filled.append((item, fill, labels[number]))
    if size > MAX_UNFOLDED:
        raise Invalid(f"unfolds to {size:,} characters; the most is {MAX_UNFOLDED:,}", where)
    return filled


def label_of(item: object) -> str:
    """What people call an item: its text or its name, short and on one line."""
    fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    named = next((fields[name] for name in _NAMING if _is_plain(fields.get(name))), None)
    text = _text(cast("object", item) if named is None else named)
    words = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * MAX_LABEL])
    line = " ".join(words.split())
    return line if len(line) <= MAX_LABEL else f"{line[: MAX_LABEL - 1]}…"


def _labels(items: Sequence[object]) -> list[str]:
    """One for each item; those that would be the same get their numbers."""
    found = [label_of(item) for item in items]
    counts = Counter(found)
    return [
        label if label and counts[label] == 1 else f"{label} ({number})".strip()
        for number, label in enumerate(found, 1)
    ]


def _task(template: Template, item: object, fill: Fill, task_id: str, label: str) -> TaskSpec:
    wanted = template.expected_output
    try:
        return TaskSpec(
            id=task_id,
            label=label,
            item_of=ITEMS,
            description=_filled(template.description, fill),
            tag=template.tag,
            inputs={**_value_filled(template.inputs, fill), "item": item},
            expected_output=_filled(wanted, fill) if isinstance(wanted, str) else wanted,
            timeout_seconds=template.timeout_seconds,
            max_attempts=template.max_attempts,
            retry=template.retry,
        )
    except ValidationError:
        raise Invalid(f"{label!r} leaves nothing of the description", "map.template.description") from None


def _texts_in(template: "Template | TaskSpec") -> Iterator[str]:
    yield template.description
    yield from _texts(template.inputs)
    if isinstance(template.expected_output, str):  # a schema has braces of its own
        yield template.expected_output


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value; names of fields are none."""
    match value:
        case str():
            yield value
        case dict():
            yield from (text for each in cast("dict[str, Any]", value).values() for text in _texts(each))
        case list():
            yield from (text for each in cast("list[Any]", value) for text in _texts(each))
        case _:
            pass


def _names_in(template: "Template | TaskSpec") -> Iterator[str]:
    """The names that stand in its texts, without those that are meant as text."""
    for text in _texts_in(template):
        yield from (found[2] for found in _NAME.finditer(text) if found[2])


def _value(item: object, name: str, where: str) -> Any:
    """What a name stands for; an error that says where the item has no such thing."""
    value = item
    for part in name.split(".")[1:]:
        match value:
            case dict() if part in value:
                value = cast("dict[str, Any]", value)[part]
            case list() if part.isascii() and part.isdecimal() and int(part) < len(cast("list[Any]", value)):
                value = cast("list[Any]", value)[int(part)]
            case _:
                raise Invalid(f"the template asks for {{{name}}}, but {_has(value)}", where)
    return value


def _has(value: object) -> str:
    """What a value has instead of what was asked for."""
    if isinstance(value, dict):
        known = sorted(map(str, cast("dict[str, Any]", value)))[:10]
        return f"there is only {', '.join(known)}" if known else "there is nothing in it"
    if isinstance(value, list):
        return f"it is a list of {len(cast('list[Any]', value))}"
    return f"it is {json.dumps(label_of(value), ensure_ascii=False)}, which has no fields"


def _filled(text: str, fill: Fill) -> str:
    return _NAME.sub(lambda found: f"{{{found[1]}}}" if found[1] else _text(fill[found[2]]), text)


def _value_filled(value: Any, fill: Fill) -> Any:
    """A JSON value with its texts filled in; one that is nothing but a name is what that stands for."""
    match value:
        case str():
            whole = _NAME.fullmatch(value)
            return fill[whole[2]] if whole is not None and whole[2] else _filled(value, fill)
        case dict():
            return {name: _value_filled(each, fill) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_value_filled(each, fill) for each in cast("list[Any]", value)]
        case _:
            return value


def _length(text: str, fill: Fill) -> int:
    """How long a text is once it is filled in, or a little less than that: counted before it is written."""
    lengths: dict[str, int] = {}
    names: Iterable[str] = (found[2] for found in _NAME.finditer(text) if found[2])
    total = len(text)
    for name in names:
        if name not in lengths:
            lengths[name] = len(_text(fill[name])) - len(name) - 2
        total += lengths[name]
    return total


def _text(value: object) -> str:
    """A value as it stands in a text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
