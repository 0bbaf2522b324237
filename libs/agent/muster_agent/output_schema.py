"""A task's `expected_output` that is a JSON Schema: whether it is one, and what an output has that it does not allow.

Pure. `jsonschema` is imported when the first schema comes: most tasks have none, and every service would pay for it.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from muster_protocol.messages import Output

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

MAX_MISTAKES = 20  # in one text: more would hide the first ones
MAX_SHOWN = 300  # characters of one mistake: it quotes what the model wrote
MAX_KNOWN = 64  # schemas that are ready to be used: all items of a map have the same one
FORMATS = ("date", "date-time", "email", "ipv4", "ipv6", "regex", "uri", "uuid")  # that are checked


def schema_mistake(schema: Mapping[str, Any]) -> str:
    """Why this is no JSON Schema that can be used; empty when it is one."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    for reference in _references(schema):
        if not reference.startswith("#"):
            return f"$ref {reference[:MAX_SHOWN]!r} leads elsewhere; put what it stands for into $defs"
    try:
        validator = _validator(_written(schema))
        type(validator).check_schema(dict(schema))
        for reference in _references(schema):  # also those that a trial does not follow
            list(validator.evolve(schema={**schema, "$ref": reference}).iter_errors(None))
        list(validator.iter_errors(None))  # one that refers to itself without end shows here
    except SchemaError as error:
        return f"{_path(error.absolute_path)}{error.message[:MAX_SHOWN]}"
    except Unresolvable as error:
        return f"$ref {error.ref[:MAX_SHOWN]!r} leads nowhere"
    except RecursionError:
        return "it refers to itself without end"
    return ""


def output_mistakes(output: Output, schema: Mapping[str, Any]) -> list[str]:
    """What an output has that its schema does not allow, each with the place; empty when it fits."""
    validator = _validator(_written(schema))
    try:
        found = sorted(validator.iter_errors(output), key=lambda error: [str(part) for part in error.absolute_path])
    except RecursionError:
        return ["its schema refers to itself without end"]
    return [f"{_path(error.absolute_path)}{error.message[:MAX_SHOWN]}" for error in found[:MAX_MISTAKES]]


def _written(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)


@lru_cache(MAX_KNOWN)
def _validator(written: str) -> "Validator":
    """A validator of the draft that the schema names, else of the newest; it fetches nothing from anywhere."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY

    schema = json.loads(written)
    kind = validator_for(schema, default=Draft202012Validator)
    return kind(schema, registry=REGISTRY, format_checker=_format_checker())


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


def _references(value: object) -> Iterator[str]:
    """Every `$ref` in a schema, however deep."""
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            fields = cast("dict[str, object]", at)
            if isinstance(reference := fields.get("$ref"), str):
                yield reference
            waiting.extend(fields.values())
        elif isinstance(at, list):
            waiting.extend(cast("list[object]", at))


def _path(parts: Any) -> str:
    """`price.0.amount: `; nothing for the whole."""
    place = ".".join(str(part) for part in parts)
    return f"{place}: " if place else ""
