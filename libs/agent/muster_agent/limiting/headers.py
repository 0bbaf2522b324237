"""What a provider says in the headers of a reply about its limits, in the words of Anthropic or of OpenAI."""

import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

KINDS = ("requests", "tokens")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(slots=True)
class Said:
    """What was said during one call: how many are left of each kind, and when those are new of which none is left."""

    left: dict[str, int] = field(default_factory=dict[str, int])
    resets: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, headers: Mapping[str, str]) -> None:
        for kind in KINDS:
            for left, reset in _names(kind):
                if (count := headers.get(left, "")).isdecimal():
                    self.left[kind] = int(count)
                    self.resets[kind] = headers.get(reset, "")

    def seconds_until_reset(self, now: float) -> float | None:
        """From now (seconds since 1970) until there is something again of what is used up; None: it was not said."""
        resets = (seconds_of(self.resets[kind], now) for kind, left in self.left.items() if left == 0)
        return max((seconds for seconds in resets if seconds is not None), default=None)


_said: ContextVar[Said | None] = ContextVar("_said", default=None)


@contextmanager
def listening() -> Generator[Said]:
    """What is noted in this block."""
    said = Said()
    token = _said.set(said)
    try:
        yield said
    finally:
        _said.reset(token)


def note_headers(headers: Mapping[str, str]) -> None:
    """To be called by a model with the headers of each reply, also of one that is an error."""
    if (said := _said.get()) is not None:
        said.take(headers)


async def note_reply(request: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
    """A middleware for a client that takes one: it sees every reply, whatever becomes of it."""
    response = await call(request)
    note_headers(response.headers)
    return response


def seconds_of(reset: str, now: float) -> float | None:
    """A time as `2026-11-20T00:01:00Z`, `6m0.5s` or `12`, as seconds from now on."""
    parts = _PART.findall(reset)
    if parts and "".join(number + unit for number, unit in parts) == reset:
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    try:
        return max(0.0, float(reset))
    except ValueError:
        pass
    try:
        return max(0.0, datetime.fromisoformat(reset).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _names(kind: str) -> tuple[tuple[str, str], ...]:
    return (
        (f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset"),
        (f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}"),
    )
