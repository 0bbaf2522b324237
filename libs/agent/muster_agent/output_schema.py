"""A task's `expected_output` that is a JSON Schema: whether it is one, and what an output has that it does not allow.

Both take bounded time, whatever the schema (bounded_schema.py). `jsonschema` is imported when the first schema comes:
most tasks have none, and every service would pay for it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from muster_agent.time_limit import TooSlow, time_limit
from muster_protocol.messages import Output

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

MAX_MISTAKES = 20  # in one text: more would hide the first ones
MAX_SHOWN = 300  # characters of one mistake: it quotes what the model wrote
MAX_KNOWN = 64  # schemas that are ready to be used: all items of a map have the same one
SCHEMA_SECONDS = 0.5  # of processor time, to look at a schema; ordinary ones take a millisecond
SCHEMAS_SECONDS = 2.0  # to look at all those of a plan: the loop of its supervisor stands still meanwhile
OUTPUT_SECONDS = 3.0  # to check one output: the loop of the worker stands still meanwhile
FORMATS = ("date", "date-time", "email", "ipv4", "ipv6", "regex", "uri", "uuid")  # that are checked


def schema_mistakes(schemas: Iterable[Mapping[str, Any]], most: int) -> dict[str, str]:
    """What is wrong with schemas, each as it is written; each is looked at once, until so many are wrong."""
    known: dict[str, str] = {}
    with time_limit(SCHEMAS_SECONDS):
        for schema in schemas:
            if (text := written(schema)) not in known:
                known[text] = schema_mistake(schema)
                most -= bool(known[text])
            if most <= 0:
                break
    return {text: mistake for text, mistake in known.items() if mistake}


def schema_mistake(schema: Mapping[str, Any]) -> str:
    """Why this is no JSON Schema that can be used; empty when it is one."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    if unsupported := _unsupported(schema):
        return unsupported
    try:
        with time_limit(SCHEMA_SECONDS):
            _try(schema)
    except SchemaError as error:
        cause = f": {error.cause}" if error.cause else ""
        return f"{_path(error.absolute_path)}{error.message[:MAX_SHOWN]}{cause}"
    except Unresolvable as error:
        return f"$ref {error.ref[:MAX_SHOWN]!r} leads nowhere"
    except RecursionError:
        return "it refers to itself without end"
    except TooSlow:
        return "looking at it takes too long; make it simpler"
    return ""


def _unsupported(schema: Mapping[str, Any]) -> str:
    """What of a schema this version does not look at."""
    for reference in _references(schema):
        if not reference.startswith("#"):
            return f"$ref {reference[:MAX_SHOWN]!r} leads elsewhere; put what it stands for into $defs"
    names = {name for fields in _objects(schema) for name in fields}
    if names >= {"unevaluatedProperties", "patternProperties"}:  # the library matches these itself, without a bound
        return "unevaluatedProperties beside patternProperties is not supported; use additionalProperties"
    return ""


def _try(schema: Mapping[str, Any]) -> None:
    """Raise if it is no schema, or does not come to an end."""
    from jsonschema import FormatChecker

    from muster_agent.bounded_schema import is_pattern

    validator, checker = _validator(written(schema)), FormatChecker([])
    checker.checks("regex", raises=ValueError)(is_pattern)
    cast("Any", type(validator)).check_schema(dict(schema), format_checker=checker)  # its types do not say the second
    whole = cast("Mapping[str, Any]", validator.schema)
    for reference in _references(schema):  # also those that a trial does not follow
        list(validator.evolve(schema={**whole, "$ref": reference}).iter_errors(None))
    list(validator.iter_errors(None))  # one that refers to itself without end shows here


def output_mistakes(output: Output, schema: Mapping[str, Any]) -> list[str]:
    """What an output has that its schema does not allow, each with the place; empty when it fits."""
    if unsupported := _unsupported(schema):  # from a task that no plan of ours has
        return [unsupported]
    validator = _validator(written(schema))
    try:
        with time_limit(OUTPUT_SECONDS):
            found = sorted(validator.iter_errors(output), key=lambda error: [str(part) for part in error.absolute_path])
    except RecursionError:
        return ["its schema refers to itself without end"]
    except TooSlow:
        return [f"checking it takes more than {OUTPUT_SECONDS:g} s; make it smaller, or its schema simpler"]
    return [f"{_path(error.absolute_path)}{error.message[:MAX_SHOWN]}" for error in found[:MAX_MISTAKES]]


def written(schema: Mapping[str, Any]) -> str:
    """The same for equal schemas."""
    return json.dumps(schema, sort_keys=True)


@lru_cache(MAX_KNOWN)
def _validator(text: str) -> "Validator":
    """A validator of the draft that the schema names, else of the newest; it fetches nothing from anywhere."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY

    from muster_agent.bounded_schema import bounded

    kind = bounded(validator_for(json.loads(text), default=Draft202012Validator))
    schema = json.loads(text, object_hook=_without_draft)
    return kind(schema, registry=REGISTRY, format_checker=_format_checker())


def _without_draft(fields: dict[str, Any]) -> dict[str, Any]:
    """A part that names a draft of its own would be checked by that one, unbounded."""
    return {name: value for name, value in fields.items() if name != "$schema" or not isinstance(value, str)}


def _format_checker() -> "FormatChecker":
    from jsonschema import FormatChecker

    checker = FormatChecker([name for name in FORMATS if name in FormatChecker.checkers])
    checker.checks("date-time", raises=ValueError)(_is_date_time)
    checker.checks("uri", raises=ValueError)(_is_uri)
    return checker


def _is_date_time(value: object) -> bool:
    """RFC 3339: with a day, a time and a zone."""
    return not isinstance(value, str) or ("T" in value.upper() and datetime.fromisoformat(value).tzinfo is not None)


def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or (bool(urlsplit(value).scheme) and not any(map(str.isspace, value)))


def _references(schema: Mapping[str, Any]) -> Iterator[str]:
    """Every `$ref` in a schema."""
    for fields in _objects(schema):
        if isinstance(reference := fields.get("$ref"), str):
            yield reference


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    """Every object in a schema, however deep."""
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Mapping):
            fields = cast("Mapping[str, object]", at)
            yield fields
            waiting.extend(fields.values())
        elif isinstance(at, list):
            waiting.extend(cast("list[object]", at))


def _path(parts: Any) -> str:
    """`price.0.amount: `; nothing for the whole."""
    place = ".".join(str(part) for part in parts)
    return f"{place}: " if place else ""
