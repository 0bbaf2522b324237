"""A schema of a stranger takes bounded time, whatever its patterns, references and items are."""

import json
import re
import time
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from muster_agent.bounded_schema import MAX_PATTERN, MAX_TEXT
from muster_agent.output_schema import OUTPUT_SECONDS, output_mistakes, schema_mistake
from muster_agent.time_limit import time_limit
from tests.guards import guards

BOUNDED = "libs/agent/muster_agent/bounded_schema.py"
SLOW, FOR_IT = "^(a+)+$", "a" * 200 + "!"  # Python's `re` would take longer than the sun shines
SLACK = 2.0  # seconds of processor time that one step may take beyond the limit


@pytest.fixture(autouse=True)
def bounded_time() -> Generator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < OUTPUT_SECONDS + SLACK


def branching(depth: int) -> dict[str, Any]:
    """A schema of a few lines with two to the power of `depth` references."""
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/a0", "$defs": {**levels, f"a{depth}": {"type": "object"}}}


@guards(BOUNDED, '"pattern": _pattern,', rule="I4", replace="", seconds=60)
def test_a_pattern_that_takes_a_backtracking_engine_for_ever_takes_no_time():
    assert schema_mistake({"pattern": SLOW}) == ""
    assert output_mistakes(FOR_IT, {"pattern": SLOW}) == [f"{FOR_IT!r} does not match {SLOW!r}"[:300]]
    assert output_mistakes("aaa", {"pattern": SLOW}) == []


OF_NAMES: list[tuple[dict[str, Any], list[str]]] = [
    ({"patternProperties": {SLOW: {"type": "number"}}}, []),
    ({"patternProperties": {SLOW: True}, "additionalProperties": False}, ["Additional properties are not allowed"]),
    ({"propertyNames": {"pattern": SLOW}}, ["does not match"]),
    ({"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#", "patternProperties": {SLOW: {}}}]}, []),
]


@pytest.mark.parametrize(("schema", "said"), OF_NAMES)
def test_names_of_properties_are_matched_as_quickly(schema: dict[str, Any], said: list[str]):
    mistakes = output_mistakes({FOR_IT: 1}, schema)

    assert len(mistakes) == len(said)
    assert all(expected in mistake for expected, mistake in zip(said, mistakes, strict=True))


def test_what_no_linear_engine_can_match_is_refused_when_the_plan_is_made():
    assert "look-around, including look-ahead and look-behind, is not supported" in schema_mistake({"pattern": "(?=a)"})
    assert "backreferences are not supported" in schema_mistake({"patternProperties": {r"(a)\1": {}}})
    assert f"at most {MAX_PATTERN:,} characters" in schema_mistake({"pattern": "a" * (MAX_PATTERN + 1)})
    assert "size limit" in schema_mistake({"pattern": "(a{1000}){1000}"})
    assert "use additionalProperties" in schema_mistake(
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False}
    )


def test_a_task_that_no_plan_was_checked_for_fails_with_the_reason():
    assert output_mistakes("a", {"pattern": "(?=a)"}) == [
        "the pattern '(?=a)' cannot be used: look-around, including look-ahead and look-behind, is not supported"
    ]
    assert "cannot be used" in output_mistakes({"a": 1}, {"patternProperties": {"(?=a)": {}}})[0]
    assert (
        "use additionalProperties"
        in output_mistakes({FOR_IT: 1}, {"patternProperties": {SLOW: {}}, "unevaluatedProperties": False})[0]
    )


def test_a_text_that_is_too_long_for_a_pattern_is_a_mistake():
    assert output_mistakes("a" * MAX_TEXT, {"pattern": "^a"}) == []
    assert output_mistakes("a" * (MAX_TEXT + 1), {"pattern": "^a"}) == [
        "more than 100,000 characters are not matched with the pattern '^a'"
    ]


@guards("libs/agent/muster_agent/time_limit.py", "if time.thread_time() > _ends_at.get():", rule="I4", seconds=60)
def test_a_schema_whose_references_branch_without_end_takes_bounded_time():
    assert schema_mistake(branching(3)) == ""
    assert schema_mistake(branching(40)) == "looking at it takes too long; make it simpler"
    with time_limit(0.2):
        assert "checking it takes more than 3 s" in output_mistakes(1, branching(40))[0]


def test_who_has_looked_at_many_schemas_has_no_time_for_more():
    with time_limit(0.05):
        assert schema_mistake(branching(40))
        assert schema_mistake({"type": "object"})
    assert schema_mistake({"type": "object"}) == ""


def test_equal_items_are_found_among_many():
    many = [{"n": n, "of": ["x"]} for n in range(10_000)]

    assert output_mistakes(many, {"uniqueItems": True}) == []
    assert output_mistakes([*many, {"of": ["x"], "n": 7}], {"uniqueItems": True}) == ["it has equal items"]


NAMES = st.sampled_from(["a", "ab", "b", "1"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2.5, "a", "ab", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
PATTERNS = st.sampled_from(["^a", "b$", "[0-9]", "a|1"])
PARTS: st.SearchStrategy[Any] = st.deferred(lambda: st.booleans() | SCHEMAS)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "number"]),
        "pattern": PATTERNS,
        "uniqueItems": st.booleans(),
        "items": PARTS,
        "properties": st.dictionaries(NAMES, PARTS, max_size=2),
        "patternProperties": st.dictionaries(PATTERNS, PARTS, max_size=2),
        "additionalProperties": PARTS,
        "anyOf": st.lists(PARTS, min_size=1, max_size=2),
    },
)


@given(VALUES, SCHEMAS, st.sampled_from([Draft202012Validator, Draft7Validator]))
def test_what_fits_is_what_fits_for_the_library(output: Any, schema: dict[str, Any], draft: Any):
    named = {**schema, "$schema": draft.META_SCHEMA["$id"]}

    assert (output_mistakes(output, named) == []) is draft(schema).is_valid(output)


def test_a_pattern_is_sought_as_the_library_seeks_it():
    for pattern, text in (("a", "bab"), (r"^\d{4}-\d{2}$", "2026-11"), (r"\w+\.txt", "é.txt"), ("^$", "")):
        assert re.search(pattern, text)
        assert output_mistakes(text, json.loads(json.dumps({"pattern": pattern}))) == []
