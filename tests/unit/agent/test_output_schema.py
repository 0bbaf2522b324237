"""A task's JSON Schema is checked when the plan is made, and the output against it, with the place of each mistake."""

import json
import subprocess
import sys
from typing import Any

import pytest

from muster_agent.output_schema import FORMATS, MAX_MISTAKES, output_mistakes, schema_mistake

PRICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "prices": {"type": "array", "items": {"$ref": "#/$defs/price"}},
        "unit": {"enum": ["hour", "month"]},
    },
    "required": ["prices"],
    "additionalProperties": False,
    "$defs": {"price": {"type": "object", "properties": {"usd": {"type": "number"}}, "required": ["usd"]}},
}
GOOD = {"prices": [{"usd": 0.04}], "unit": "hour"}


def test_an_output_that_fits_has_no_mistakes():
    assert schema_mistake(PRICES) == ""
    assert output_mistakes(GOOD, PRICES) == []


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"prices": [{"usd": "0.04"}]}, "prices.0.usd: '0.04' is not of type 'number'"),
        ({"prices": [{"usd": 1}, {}]}, "prices.1: 'usd' is a required property"),
        ({**GOOD, "unit": "day"}, "unit: 'day' is not one of ['hour', 'month']"),
        ({**GOOD, "more": 1}, "Additional properties are not allowed ('more' was unexpected)"),
        ([], "[] is not of type 'object'"),
    ],
)
def test_a_mistake_is_said_with_its_place(output: object, said: str):
    assert output_mistakes(output, PRICES) == [said]


def test_many_mistakes_are_cut():
    assert len(output_mistakes({"prices": [{}] * 100}, PRICES)) == MAX_MISTAKES


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date", "2026-11-18", "18.11.2026"),
        ("date-time", "2026-11-18T20:00:00Z", "2026-11-18"),
        ("email", "ann@example.com", "ann"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "1"),
        ("regex", "a+", "a("),
        ("uri", "https://example.com/a", "example.com"),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99"),
    ],
)
def test_a_format_is_checked(name: str, right: str, wrong: str):
    assert name in FORMATS
    assert output_mistakes(right, {"format": name}) == []
    assert output_mistakes(wrong, {"format": name}) == [f"{wrong!r} is not a {name!r}"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "objekt"}, "type: 'objekt' is not valid"),
        ({"properties": {"a": {"required": 5}}}, "properties.a.required: 5 is not of type 'array'"),
        ({"pattern": "("}, "pattern: '(' is not a 'regex'"),
        ({"properties": {"a": {"$ref": "#/$defs/no"}}}, "$ref '/$defs/no' leads nowhere"),
        ({"$ref": "https://example.com/schema.json"}, "leads elsewhere; put what it stands for into $defs"),
        ({"$ref": "#"}, "it refers to itself without end"),
    ],
)
def test_what_is_no_schema_is_said(schema: dict[str, Any], said: str):
    assert said in schema_mistake(schema)


def test_a_schema_that_refers_to_itself_with_an_end_is_one():
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["value"]}

    assert schema_mistake(tree) == ""
    assert output_mistakes({"value": 1, "next": {"next": {"value": 2}}}, tree) == [
        "next: 'value' is a required property"
    ]


def test_the_library_is_not_loaded_before_it_is_needed():
    imports = "import sys, muster_worker.worker, muster_supervisor.planning.planner"
    code = f"{imports}; assert 'jsonschema' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_schema_is_known_whatever_the_order_of_its_keys():
    assert output_mistakes([], json.loads(json.dumps(PRICES, sort_keys=True))) == output_mistakes([], PRICES)
