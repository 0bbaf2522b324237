"""Compares a stream that exists with the one that is wanted: what to change, or why it must not be changed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import cast

from nats.js import api

from muster_protocol.errors import Misconfigured

BUCKETS = ("KV_", "OBJ_")  # how the names of the streams under them begin
FIXED = ("retention", "storage")  # the broker changes neither
LIMITS = ("max_age", "max_msgs_per_subject")  # a lower one would delete what is stored
SET = ("discard", "allow_direct", "republish")

BY_HAND = "it holds data, so change or remove it by hand, then provision again"  # the way out of every refusal


@dataclass(frozen=True, slots=True)
class Change:
    """A field of a stream that becomes what is wanted."""

    field: str
    before: object
    after: object

    def __str__(self) -> str:
        if self.field == "subjects":  # of a queue there may be hundreds
            before, after = cast("list[object]", self.before), cast("list[object]", self.after)
            more = [one for one in after if one not in before]
            return f"{self.field} with {_plain(more)} added"
        return f"{self.field} from {_plain(self.before)} to {_plain(self.after)}"


def changes(existing: api.StreamConfig, wanted: api.StreamConfig) -> list[Change]:
    """What makes `existing` as wanted, and loses nothing: subjects are added, limits and replicas raised.

    Misconfigured names the stream, the field and both values where that would not do. Sizes are the operator's.
    """
    return [*_settings(existing, wanted), *_additions(existing, wanted)]


def _settings(existing: api.StreamConfig, wanted: api.StreamConfig) -> Iterator[Change]:
    what = called(str(wanted.name))
    for field in FIXED:
        refuse_difference(what, field, getattr(existing, field), getattr(wanted, field))
    for field in LIMITS:
        before, after = getattr(existing, field), getattr(wanted, field)
        if _bound(before) > _bound(after):
            refuse_difference(what, field, before, after)
        elif _bound(before) < _bound(after):
            yield Change(field, before, after)
    for field in SET:
        before, after = getattr(existing, field), getattr(wanted, field)
        if _differ(_target(before), _target(after)):
            yield Change(field, before, after)


def _additions(existing: api.StreamConfig, wanted: api.StreamConfig) -> Iterator[Change]:
    before = existing.subjects or []
    if not set(wanted.subjects or []) <= set(before):
        yield Change("subjects", before, sorted({*before, *(wanted.subjects or [])}))
    if (existing.num_replicas or 1) < (wanted.num_replicas or 1):
        yield Change("num_replicas", existing.num_replicas or 1, wanted.num_replicas)


def refuse_difference(what: str, field: str, existing: object, wanted: object) -> None:
    if _differ(existing, wanted):
        raise Misconfigured(
            f"{what} exists with {field} = {_plain(existing)}, but Muster needs {_plain(wanted)}; {BY_HAND}"
        )


def called(stream: str) -> str:
    return f"bucket {stream.partition('_')[2]}" if stream.startswith(BUCKETS) else f"stream {stream}"


def listed(changed: Iterable[Change]) -> str:
    return "; ".join(map(str, changed))


def _bound(limit: float | None) -> float:
    """How much a limit lets be stored: 0 and -1 are no limit."""
    return limit if limit and limit > 0 else float("inf")


def _target(value: object) -> object:
    """What counts of a republish is where it goes: the broker writes its source in another way than it was given."""
    return value.dest if isinstance(value, api.RePublish) else value


def _differ(existing: object, wanted: object) -> bool:
    return existing != wanted and bool(existing or wanted)


def _plain(value: object) -> object:
    value = _target(value)
    match value:
        case Enum():
            return value.value
        case list():
            return ", ".join(map(str, cast("list[object]", value))) or "none"
        case _:
            return value
