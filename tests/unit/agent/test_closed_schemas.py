"""A schema that is closed for a provider allows all that it allowed, unless it had to stay open."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from muster_agent.models.wire.structured import FORMS, closed, closed_form, is_complete

PLAIN: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "string", "minLength": 1}, st.text(min_size=1, max_size=5)),
    ({"type": "integer", "minimum": 3, "title": "n"}, st.integers(min_value=3)),
    ({"type": "boolean", "default": False}, st.booleans()),
    ({"enum": ["a", "b"]}, st.sampled_from(["a", "b"])),
    ({"type": ["string", "null"]}, st.one_of(st.text(max_size=3), st.none())),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, st.one_of(st.integers(), st.text(max_size=3))),
]


@st.composite
def schema_and_value(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], Any]:
    """A schema without open objects, and a value that it allows."""
    kind = draw(st.sampled_from(("plain", "array", "object") if depth else ("plain",)))
    if kind == "plain":
        schema, values = draw(st.sampled_from(PLAIN))
        return schema, draw(values)
    if kind == "array":
        schema, value = draw(schema_and_value(depth - 1))
        return {"type": "array", "items": schema, "maxItems": 9}, [value] * draw(st.integers(0, 2))
    fields = draw(st.dictionaries(st.sampled_from("abc"), schema_and_value(depth - 1), min_size=1, max_size=3))
    required = draw(st.sets(st.sampled_from(sorted(fields))))
    kept = {name: value for name, (_, value) in fields.items() if name in required or draw(st.booleans())}
    properties = {name: schema for name, (schema, _) in fields.items()}
    return {"type": "object", "properties": properties, "required": sorted(required)}, kept


def is_closed(node: object) -> bool:
    if isinstance(node, list):
        return all(map(is_closed, cast("list[object]", node)))
    if not isinstance(node, dict):
        return True
    fields = cast("dict[str, object]", node)
    is_open = fields.get("type") == "object" and fields.get("additionalProperties") is not False
    return not is_open and all(map(is_closed, fields.values()))


@given(schema_and_value())
def test_what_a_schema_allows_its_closed_form_allows(pair: tuple[dict[str, Any], Any]):
    schema, value = {"type": "object", "properties": {"x": pair[0]}, "required": ["x"]}, {"x": pair[1]}
    assert Draft202012Validator(schema).is_valid(value)

    found = closed(schema)

    assert found is not None
    assert is_closed(found)
    assert Draft202012Validator(found).is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"not": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {str(n): {"type": "string"} for n in range(30)}},
        {"type": "array", "items": {"type": "string"}},
        {"properties": {"a": {"type": "string"}}},
    ],
)
def test_a_schema_that_cannot_be_closed_or_is_too_large_is_none(schema: dict[str, Any]):
    assert closed(schema) is None


def test_our_own_forms_are_closed_and_written_in_full():
    for form in FORMS.values():
        schema = closed_form(form)
        assert is_closed(schema)
        assert is_complete(schema)
        Draft202012Validator.check_schema(schema)
