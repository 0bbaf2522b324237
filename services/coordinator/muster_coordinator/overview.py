"""The picture: one summary per request, counted from the headers of its log, within bounds. Pure.

Each entry says which one came before it on its subject, so a summary knows when it has missed something; then it
asks for the log to be read. So nothing here depends on having been up.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from muster_coordinator import status
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.messages import Answer, Result, Taken
from muster_protocol.subjects import is_id

MAX_OPEN = 10_000
MAX_ENDED = 1_000
MAX_STRAYS = 10_000
HANDED_BACK = b'"handed_back":true'  # as the bus writes it; the one word of a body that matters here


@dataclass(slots=True)
class Summary:
    """A request at a glance."""

    id: str
    team: str = ""
    status: str = status.WAITING
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float | None = None  # from taken to answered
    owner: str = ""
    term: int = 0
    last_sequence: int = 0

    def as_json(self) -> dict[str, object]:
        shown = asdict(self)
        del shown["term"], shown["last_sequence"]
        shown["usd"] = round(self.usd, 6)
        return shown


class Overview:
    """The requests that are open, the last ones that ended, and those with something unread."""

    def __init__(self, max_open: int = MAX_OPEN, max_ended: int = MAX_ENDED) -> None:
        self._max_open = max_open
        self._max_ended = max_ended
        self.open: dict[str, Summary] = {}
        self.ended: dict[str, Summary] = {}
        self.unread: dict[str, int] = {}  # up to which sequence at least; who waits longest is first
        self._strays: dict[str, int] = {}  # last sequence on subjects that no owner has written on

    def get(self, request_id: str) -> Summary | None:
        return self.open.get(request_id) or self.ended.get(request_id)

    def last_of(self, request_id: str) -> int:
        """The last sequence that was counted, or found to be of no use."""
        summary = self.open.get(request_id) or self.ended.get(request_id)
        return self._strays.get(request_id, 0) if summary is None else summary.last_sequence

    def expect(self, request_id: str, team: str = "") -> None:
        """A request is known to be asked: its log is to be read, if it has one."""
        summary = self.get(request_id)
        if summary is None:
            summary = self._new(request_id)
            self.unread.setdefault(request_id, 0)
        summary.team = summary.team or team

    def mark_all_stale(self) -> None:
        """Nothing was heard for a while: every open log is to be read on."""
        self.unread = dict.fromkeys(self.open, 0) | self.unread

    def note_unread(self, request_id: str, sequence: int) -> None:
        """There is an entry that was not counted, unless it was."""
        if sequence > self.last_of(request_id) and is_id(request_id):
            self.unread[request_id] = max(sequence, self.unread.get(request_id, 0))

    def is_next(self, request_id: str, sequence: int, previous: int) -> bool:
        """Whether a live entry follows what was counted; if it is too new, its log is noted as unread."""
        if previous == self.last_of(request_id):
            return True
        self.note_unread(request_id, sequence)
        return False

    def skip(self, request_id: str, sequence: int) -> None:
        """An entry that says nothing here: it is read, and that is all."""
        summary = self.get(request_id)
        if summary is not None:
            summary.last_sequence = max(sequence, summary.last_sequence)
            return
        if request_id not in self._strays and len(self._strays) >= MAX_STRAYS:
            del self._strays[next(iter(self._strays))]
        self._strays[request_id] = max(sequence, self._strays.get(request_id, 0))

    def count(self, request_id: str, sequence: int, headers: Mapping[str, str], body: bytes) -> None:
        """Take one entry in; older ones than the last change nothing."""
        kind = headers.get(h.KIND)
        is_owner = h.is_owner(headers.get(h.SENDER, ""))
        summary = self.get(request_id)
        if summary is None:
            if not is_owner or kind not in (Taken.kind, Answer.kind):
                self.skip(request_id, sequence)
                return  # a log begins with its owner; anything else is a stray message
            summary = self._new(request_id)
        if sequence <= summary.last_sequence:
            return
        summary.last_sequence = sequence
        if kind == Result.kind:
            _count_result(summary, headers)
        elif not is_owner:
            return
        elif kind == Taken.kind and HANDED_BACK not in body:
            if summary.id not in self.ended:
                summary.status = status.OPEN
            summary.term = sequence
            summary.team = summary.team or _team_of(body)
            summary.owner = headers[h.SENDER].removeprefix("supervisor/")
        elif kind == Answer.kind and number(headers.get(h.TERM, "0")) == summary.term:
            self._end(summary, headers)

    def counts(self) -> dict[str, int]:
        """Requests by status; of the ended ones those that are still remembered."""
        statuses = Counter(summary.status for summaries in (self.open, self.ended) for summary in summaries.values())
        return {status.WAITING: 0, status.OPEN: 0, **statuses}

    def _new(self, request_id: str) -> Summary:
        if len(self.open) >= self._max_open:
            del self.open[next(iter(self.open))]
        self._strays.pop(request_id, None)
        summary = self.open[request_id] = Summary(request_id)
        return summary

    def _end(self, summary: Summary, headers: Mapping[str, str]) -> None:
        if summary.id in self.ended:
            return
        summary.status = headers.get("status", status.ENDED)
        summary.seconds = real(headers.get("seconds", "0"))
        self.open.pop(summary.id, None)
        if len(self.ended) >= self._max_ended:
            del self.ended[next(iter(self.ended))]
        self.ended[summary.id] = summary


def _team_of(body: bytes) -> str:
    try:
        return Taken.read(body).team
    except Invalid:
        return ""


def _count_result(summary: Summary, headers: Mapping[str, str]) -> None:
    status = headers.get("status")
    if status == "done":
        summary.done += 1
    elif status == "failed":
        summary.failed += 1
    elif status == "cancelled":
        summary.cancelled += 1
    tokens = headers.get("tokens", "0")
    if tokens != "0":
        summary.tokens += number(tokens)
        summary.usd += real(headers.get("usd", "0"))


def number(text: str) -> int:
    """A header's number; whatever is none counts nothing."""
    return int(text) if len(text) < 19 and text.isascii() and text.isdigit() else 0


def real(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
