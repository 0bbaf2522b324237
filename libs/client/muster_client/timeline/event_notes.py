"""What events and conflict records say about each attempt; their order and repetitions change nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

from muster_protocol.conflict import Conflict
from muster_protocol.messages import AttemptEvent, ConflictFound, HandedBack, Progress, Refused, Started, ToolUsed

Delivery = tuple[str, int, int]  # a worker, the number of the delivery that it took, and the message in TASKS


class StoredEvent(NamedTuple):
    """An event with its broker time and its sender."""

    time: float
    sender: str
    body: AttemptEvent


@dataclass(slots=True)
class EventNotes:
    """What was said about one attempt."""

    starts: dict[Delivery, tuple[float, str]] = field(default_factory=dict[Delivery, tuple[float, str]])  # and the role
    signs: dict[Delivery, float] = field(default_factory=dict[Delivery, float])  # when it last said that it runs
    hand_backs: dict[Delivery, tuple[float, str]] = field(default_factory=dict[Delivery, tuple[float, str]])  # and why
    progress: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])  # with the worker
    tools: list[tuple[float, str, ToolUsed]] = field(default_factory=list[tuple[float, str, ToolUsed]])
    conflicts: list[tuple[float, dict[str, Any]]] = field(default_factory=list[tuple[float, dict[str, Any]]])

    def add(self, event: StoredEvent) -> None:
        body = event.body
        match body:
            case Started():
                self.starts.setdefault((body.worker, body.delivery, body.task_sequence), (event.time, body.role))
                # events come in the order of time
                self.signs[body.worker, body.delivery, body.task_sequence] = event.time
            case HandedBack():
                self.hand_backs.setdefault((body.worker, body.delivery, body.task_sequence), (event.time, body.why))
            case Progress():
                self.progress.append((event.time, _instance(event.sender), body.text))
            case ToolUsed():
                self.tools.append((event.time, _instance(event.sender), body))
            case ConflictFound():
                self.conflicts.append((event.time, body.model_dump(mode="json")))
            case Refused():
                return  # nothing was run; if it was a copy, a conflict tells of it
            case _:
                assert_never(body)


def by_attempt(events: Iterable[StoredEvent]) -> dict[tuple[str, int], EventNotes]:
    """What was said, by task and attempt."""
    notes: dict[tuple[str, int], EventNotes] = {}
    for event in _in_order(events):
        notes.setdefault((event.body.task_id, event.body.attempt), EventNotes()).add(event)
    return notes


def with_records(
    notes: dict[tuple[str, int], EventNotes], records: Iterable[Conflict], now: float
) -> dict[tuple[str, int], EventNotes]:
    """The same, with each conflict as its record has it: an event says only what was known when it was found."""
    for record in records:
        found = ConflictFound.of_record(record).model_dump(mode="json")
        sides = record.model_dump(mode="json", include={"sides", "more_sides", "succeeded"})
        noted = notes.setdefault((record.task_id, record.attempt), EventNotes())
        noted.conflicts = [(min(now, record.found_at), {**found, **sides})]  # whatever time somebody wrote there
    return notes


def _in_order(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Each event once, by time; events of one moment by what they say, so that one order comes out."""
    keyed = {(event.time, event.sender, event.body.kind, event.body.body()): event for event in events}
    return [keyed[key] for key in sorted(keyed)]


def _instance(sender: str) -> str:
    """The worker that `worker/<instance>[/<role>]` names."""
    return sender.partition("/")[2].partition("/")[0]
