"""The schema that a model's reply is bound to: one of ours, or the one of a task or an answer if it can be closed.

A provider that binds replies to a schema wants every object closed, and knows few words. So what a schema of a user
says beyond that is left out: the reply is then bound a little less than it says, and is checked in full afterwards.
A schema that would be bound to more than it says, such as one with open objects, is only told to the model.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel

from muster_agent.models.port import Brief, ComposeBrief, JudgeBrief, PlanBrief, RefineBrief, WorkBrief
from muster_agent.models.prompts.draft import Choice, PlanDraft, ReplaceDraft, ReviewDraft
from muster_agent.models.refined import RefineDraft
from muster_agent.models.standing import ReplaceBrief, ReviewBrief

FORMS: Mapping[type, type[BaseModel]] = {
    PlanBrief: PlanDraft,
    RefineBrief: RefineDraft,
    ReviewBrief: ReviewDraft,
    ReplaceBrief: ReplaceDraft,
    JudgeBrief: Choice,
}
MAX_OPTIONAL = 24  # properties that may be left out, and …
MAX_CHOICES = 16  # … places with several types: beyond these Claude's API refuses a schema
MAX_DEPTH = 20
_KEPT = ("type", "enum", "const", "description")
_IGNORED = {  # they say more of a value than its shape; the check afterwards knows them
    *("title", "default", "examples", "format", "pattern", "minLength", "maxLength", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"),
    *("$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"),
}
_SHAPES = {"properties", "required", "additionalProperties", "items", "anyOf", "oneOf"}
_PLAIN_TYPES = {"string", "number", "integer", "boolean", "null"}


class _Open(Exception):
    """The schema cannot be closed."""


def closed_form(form: type[BaseModel]) -> dict[str, Any]:
    """The schema of a draft of ours, with every field written: what a draft leaves out has a neutral value."""
    return cast("dict[str, Any]", _all_written(_without_refs(form.model_json_schema())))


def wanted_schema(brief: Brief) -> Mapping[str, Any] | None:
    """The schema of a user that the reply has to fit, if there is one."""
    match brief:
        case WorkBrief(expected_output=Mapping() as schema) | ComposeBrief(schema=Mapping() as schema):
            return schema
        case _:
            return None


def closed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema that allows all that this one allows, with closed objects; None: there is no such schema."""
    counts = {"optional": 0, "choices": 0}
    try:
        found = _closed(schema, counts, MAX_DEPTH)
    except _Open:
        return None
    is_small = counts["optional"] <= MAX_OPTIONAL and counts["choices"] <= MAX_CHOICES
    return found if is_small and found.get("type") == "object" else None


def is_complete(schema: object) -> bool:
    """Whether every property of every object has to be written, as OpenAI's strict mode wants it."""
    if isinstance(schema, list):
        return all(is_complete(one) for one in cast("list[object]", schema))
    if not isinstance(schema, dict):
        return True
    fields = cast("dict[str, object]", schema)
    properties = fields.get("properties")
    required = fields.get("required", [])
    is_here = not isinstance(properties, dict) or set(cast("dict[str, object]", properties)) == set(
        cast("list[str]", required)
    )
    return is_here and all(is_complete(value) for value in fields.values())


def _closed(schema: object, counts: dict[str, int], depth: int) -> dict[str, Any]:
    if not isinstance(schema, dict) or depth == 0:
        raise _Open
    fields = cast("dict[str, Any]", schema)
    if not fields.keys() <= {*_KEPT, *_IGNORED, *_SHAPES}:
        raise _Open
    kept: dict[str, Any] = {name: fields[name] for name in _KEPT if name in fields}
    if choices := fields.get("anyOf") or fields.get("oneOf"):
        if "properties" in fields or "items" in fields or "type" in fields:
            raise _Open
        counts["choices"] += 1
        return {**kept, "anyOf": [_closed(choice, counts, depth - 1) for choice in choices]}
    match fields.get("type"):
        case "object":
            return {**kept, **_object(fields, counts, depth)}
        case "array" if "items" in fields:
            return {**kept, "items": _closed(fields["items"], counts, depth - 1)}
        case list() if set(cast("list[str]", fields["type"])) <= _PLAIN_TYPES:
            counts["choices"] += 1
            return kept
        case str() as plain if plain in _PLAIN_TYPES:
            return kept
        case None if "enum" in fields or "const" in fields:
            return kept
        case _:
            raise _Open


def _object(fields: Mapping[str, Any], counts: dict[str, int], depth: int) -> dict[str, Any]:
    properties = cast("dict[str, Any]", fields.get("properties") or {})
    required = cast("list[str]", fields.get("required") or [])
    if not properties or fields.get("additionalProperties", False) is not False or not set(required) <= set(properties):
        raise _Open
    counts["optional"] += len(properties) - len(set(required))
    inner = {name: _closed(inner, counts, depth - 1) for name, inner in properties.items()}
    return {"properties": inner, "required": required, "additionalProperties": False}


def _without_refs(schema: dict[str, Any]) -> object:
    """A schema of ours with its definitions in place; none of them refers to itself."""
    known = cast("dict[str, Any]", schema.pop("$defs", {}))

    def put(node: object) -> object:
        if isinstance(node, list):
            return [put(one) for one in cast("list[object]", node)]
        if not isinstance(node, dict):
            return node
        fields = cast("dict[str, Any]", node)
        if "$ref" in fields:
            return put(known[str(fields["$ref"]).rpartition("/")[2]])
        return {name: put(value) for name, value in fields.items() if name != "default"}

    return put(schema)


def _all_written(node: object) -> object:
    if isinstance(node, list):
        return [_all_written(one) for one in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    fields = {name: _all_written(value) for name, value in cast("dict[str, Any]", node).items()}
    if fields.get("type") == "object" and "properties" in fields:
        fields |= {"required": list(cast("dict[str, Any]", fields["properties"])), "additionalProperties": False}
    return fields
