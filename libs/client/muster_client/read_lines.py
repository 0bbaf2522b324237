"""Reads the lines about a request from the streams, each once, and goes on from where the last look ended."""

from muster_bus.connection import Bus
from muster_bus.read_stream import Raw
from muster_bus.receive import open_live, opened
from muster_client.log_lines import LogLine, in_order, line_of
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import EVENT_KINDS, LOG_KINDS, Answer, ErrorReport

_ERRORS = {ErrorReport.kind: ErrorReport}


class LineReader:
    """The lines of one request; `is_answered` once the answer was among them."""

    def __init__(self, bus: Bus, request_id: str) -> None:
        self._bus = bus
        self._request_id = request_id
        self._read: dict[str, int] = {}  # the last sequence of each subject
        self.is_answered = False

    async def new(self) -> list[LogLine]:
        """What has come since the last time, in the order of time."""
        entries = [
            line for raw in await self._next(subjects.results(self._request_id)) for line in await self._log(raw)
        ]
        events = [line for raw in await self._next(subjects.events(self._request_id)) for line in self._event(raw)]
        errors = [line for raw in await self._next(subjects.ERRORS) for line in self._error(raw)]
        return in_order([*entries, *events, *errors])

    async def _next(self, subject: str) -> list[Raw]:
        found = await self._bus.read(subject, self._read.get(subject, 0), from_leader=True)
        if found:
            self._read[subject] = found[-1].sequence
        return found

    async def _log(self, raw: Raw) -> list[LogLine]:
        try:
            sender, body = await opened(self._bus, raw, LOG_KINDS, self._request_id)
        except Invalid:
            return []  # the gate has reported it, and that is a line
        self.is_answered |= isinstance(body, Answer)
        return [line_of(raw.time, sender, body)]

    def _event(self, raw: Raw) -> list[LogLine]:
        try:
            sender, body = open_live(raw, EVENT_KINDS)
        except Invalid:
            return []  # the coordinator reports it
        return [line_of(raw.time, sender, body)]

    def _error(self, raw: Raw) -> list[LogLine]:
        try:
            sender, body = open_live(raw, _ERRORS)
        except Invalid:
            return []  # an advisory of the broker, or garbage, which is never reported again
        return [line_of(raw.time, sender, body)] if body.request_id == self._request_id else []
