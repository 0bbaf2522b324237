"""What results name as their sources: addresses, fields of that name, and lines that begin with it. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from muster_protocol.messages import Output
from muster_supervisor.checking.urls import urls

MAX_SOURCES = 50
MAX_SOURCE = 300  # characters of one
MAX_CHARACTERS = 40_000  # of one output that are looked at
MAX_VALUES = 2_000  # of one JSON output
_KEY_WORDS = "source sources citation citations reference references url urls link links"
_KEYS = frozenset(_KEY_WORDS.split())
_LINE = re.compile(r"(?:^[\s>*_(-]*|[.;!?)]\s+\(?)sources?\s*[:：]\s*\**\s*(\S.*)$", re.IGNORECASE | re.MULTILINE)


def sources(outputs: Iterable[Output]) -> tuple[str, ...]:
    """Each source once, in the order of the outputs; the first MAX_SOURCES."""
    found: dict[str, None] = {}
    for output in outputs:
        for source in _of_text(output) if isinstance(output, str) else _of_json(output):
            if text := " ".join(source.split())[:MAX_SOURCE]:
                found.setdefault(text)
            if len(found) == MAX_SOURCES:
                return tuple(found)
    return tuple(found)


def _of_text(text: str) -> Iterator[str]:
    text = text[:MAX_CHARACTERS]
    if "ource" in text or "OURCE" in text:
        for line in _LINE.findall(text):
            yield from urls(line) or [line.rstrip(" .)*_")]
    yield from urls(text)


def _of_json(output: Output) -> Iterator[str]:
    waiting: list[tuple[Any, bool]] = [(output, False)]
    for _ in range(MAX_VALUES):
        if not waiting:
            return
        value, is_source = waiting.pop()
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            waiting.extend((each, key.lower() in _KEYS) for key, each in reversed(fields.items()))
        elif isinstance(value, list):
            waiting.extend((each, is_source) for each in reversed(cast("list[Any]", value)[:MAX_VALUES]))
        elif isinstance(value, str):
            yield from urls(value[:MAX_CHARACTERS]) or ([value] if is_source else [])
