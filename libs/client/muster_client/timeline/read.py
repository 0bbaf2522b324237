"""Reads what a timeline is made of: the log, the events, the conflict records, and when the request was asked."""

from contextlib import aclosing
from dataclasses import replace

from muster_bus.buckets.conflicts import conflicts_of
from muster_bus.connection import Bus
from muster_bus.log import entry_of
from muster_bus.receive import open_live, opened
from muster_bus.tracing.context import TRACEPARENT, parsed, trace_id_of
from muster_client.queue import queued
from muster_client.timeline.build import timeline
from muster_client.timeline.event_notes import StoredEvent
from muster_client.timeline.steps import Timeline
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry
from muster_protocol.messages import EVENT_KINDS, LOG_KINDS, Answer, CalledBack, Taken


async def read_timeline(bus: Bus, request_id: str) -> Timeline:
    """The timeline of a request as it stands now."""
    entries: list[Entry] = []
    traceparent = ""
    for raw in await bus.read(subjects.results(request_id), from_leader=True):
        traceparent = traceparent or raw.headers.get(TRACEPARENT, "")
        try:
            entries.append(entry_of(raw, await opened(bus, raw, LOG_KINDS, request_id)))
        except Invalid:
            continue  # the gate has reported it
    answers = [entry.body for entry in entries if isinstance(entry.body, Answer)]
    asked_at = None if answers else await _asked_at(bus, request_id, entries)
    events, conflicts = await _events(bus, request_id), await conflicts_of(bus, request_id)
    found = timeline(request_id, entries, events, now=bus.clock.now(), asked_at=asked_at, conflicts=conflicts)
    answer = found.state.answer
    return replace(
        found, trace_id=answer.trace_id if answer and answer.trace_id else _trace_id(traceparent, request_id)
    )


def _trace_id(traceparent: str, request_id: str) -> str:
    """The trace that the messages of a request name, else the one that its own id gives."""
    span = parsed(traceparent)
    return f"{span.trace_id:032x}" if span else trace_id_of(request_id)


async def _events(bus: Bus, request_id: str) -> list[StoredEvent]:
    events: list[StoredEvent] = []
    for raw in await bus.read(subjects.events(request_id), from_leader=True):
        try:
            event = open_live(raw, EVENT_KINDS)
        except Invalid:
            continue  # the coordinator reports it
        if not isinstance(event.body, CalledBack):  # it is about the answer, not about an attempt
            events.append(StoredEvent(raw.time, event.sender, event.body))
    return events


async def _asked_at(bus: Bus, request_id: str, entries: list[Entry]) -> float | None:
    """When the request was stored: the queue has it until it is answered."""
    sequence = next((entry.body.request_sequence for entry in entries if isinstance(entry.body, Taken)), None)
    if sequence is not None:
        page = await bus.next_page(subjects.ALL_REQUESTS, sequence - 1)
        return page[0].time if page and page[0].sequence == sequence else None
    async with aclosing(queued(bus)) as requests:
        async for request in requests:
            if request.id == request_id:
                return request.time
    return None
