"""JSON Schemas of strangers, checked in bounded time (decision 32).

Python's `re` takes exponential time for some patterns, a schema whose references branch takes exponentially many steps,
and the objects of a long list are compared in pairs to find equal ones. Whoever checks would hang with its whole loop.
So patterns take linear time here, equal items are found by their hashes, and before every step the time is looked at.
"""

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from pydantic_core import SchemaError, SchemaValidator, core_schema

from muster_agent.time_limit import look_at_the_time

MAX_PATTERN = 1_000  # characters: what a longer one matches is read more slowly
MAX_TEXT = 100_000  # characters that are matched: the worst pattern takes a second for them
MAX_SHOWN = 60  # characters of a pattern in an error
MAX_KNOWN = 256  # patterns that are ready to be used

Errors = Iterable[ValidationError]
Rule = Callable[[Any, Any, Any, Mapping[str, Any]], Errors | None]  # validator, value, instance, schema


class Unusable(ValueError):
    """A pattern that is none, or one that could not be matched in linear time; the text says why."""


@lru_cache
def bounded(kind: type[Validator]) -> type[Validator]:
    """The same draft, with bounded keywords."""
    rules = cast("dict[str, Rule]", dict(kind.VALIDATORS))
    own: dict[str, Rule] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "uniqueItems": _unique_items,
        "additionalProperties": _additional_properties(rules["additionalProperties"]),
    }
    timed = {name: _timed(rule) for name, rule in (rules | own).items()}
    return cast("type[Validator]", cast("Any", validators).extend(kind, timed))  # its types are not said


def is_match(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text."""
    look_at_the_time()
    return _compiled(pattern).isinstance_python(text)


@lru_cache(MAX_KNOWN)
def _compiled(pattern: str) -> SchemaValidator:
    """Ready to be used by pydantic's own engine, which takes linear time and so knows no look-around."""
    if len(pattern) > MAX_PATTERN:
        raise Unusable(f"a pattern has at most {MAX_PATTERN:,} characters")
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise Unusable(reason.removeprefix("error: ").removeprefix("SchemaError: ")) from None


def is_pattern(value: object) -> bool:
    """A check of format: raises with the reason if a text is no pattern that can be used."""
    if isinstance(value, str):
        look_at_the_time()
        _compiled(value)
    return True


def _timed(rule: Rule) -> Rule:
    def timed(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
        look_at_the_time()
        return rule(validator, value, instance, schema) or ()

    return timed


def _pattern(_: Any, pattern: str, instance: Any, __: Mapping[str, Any]) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    if len(instance) > MAX_TEXT:
        yield ValidationError(f"more than {MAX_TEXT:,} characters are not matched with the pattern {_shown(pattern)}")
        return
    try:
        if not is_match(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")
    except Unusable as reason:
        yield ValidationError(f"the pattern {_shown(pattern)} cannot be used: {reason}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    fields = cast("dict[str, Any]", instance)
    for pattern, schema in patterns.items():
        try:
            matched = [name for name in fields if _is_name_matched(pattern, name)]
        except Unusable as reason:
            yield ValidationError(f"the pattern {_shown(pattern)} cannot be used: {reason}")
            continue
        for name in matched:
            yield from validator.descend(fields[name], schema, path=name, schema_path=pattern)


def _additional_properties(rule: Rule) -> Rule:
    """The draft's own rule, which need not match anything: names that a pattern allows count as properties."""

    def additional(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Errors | None:
        patterns = schema.get("patternProperties")
        if not patterns or not isinstance(instance, dict):
            return rule(validator, value, instance, schema)
        with contextlib.suppress(Unusable):  # `patternProperties` says so
            names = [
                name for name in cast("dict[str, Any]", instance) if any(_is_name_matched(p, name) for p in patterns)
            ]
            known = {**schema.get("properties", {}), **dict.fromkeys(names, True)}
            others = {name: part for name, part in schema.items() if name != "patternProperties"}
            return rule(validator, value, instance, {**others, "properties": known})
        return None

    return additional


def _is_name_matched(pattern: str, name: str) -> bool:
    return len(name) <= MAX_TEXT and is_match(pattern, name)


def _unique_items(_: Any, is_unique: bool, instance: Any, __: Mapping[str, Any]) -> Iterator[ValidationError]:
    if is_unique and isinstance(instance, list):
        items = cast("list[Any]", instance)
        if len({_key(item) for item in items}) < len(items):
            yield ValidationError("it has equal items")


def _key(value: Any) -> Hashable:
    """Equal for what JSON Schema calls equal: 1 and 1.0, but not true."""
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return ("object", frozenset((name, _key(part)) for name, part in fields.items()))
        case list():
            return ("list", tuple(map(_key, cast("list[Any]", value))))
        case _:
            return (isinstance(value, bool), value)


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= MAX_SHOWN else f"{pattern[:MAX_SHOWN]}…")
