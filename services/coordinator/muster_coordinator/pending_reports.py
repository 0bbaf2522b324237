"""Messages that cannot be used and are to be reported: each once, within bounds. Pure."""

from dataclasses import dataclass

from muster_bus.reported_ids import RECENT_SECONDS
from muster_bus.reports import EXCERPT, Source
from muster_protocol import headers as h

MAX_WAITING = 10_000
MAX_REPORTED = 50_000  # ids: about five megabytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message cannot be used, and when it was stored."""

    reason: str
    source: Source
    at: float

    def is_recent(self, now: float) -> bool:
        return now - self.at < RECENT_SECONDS


class PendingReports:
    """Waiting to be reported, by the message id of the report; and those that are on `errors` already."""

    def __init__(self) -> None:
        self.waiting: dict[str, Refusal] = {}
        self._reported: dict[str, None] = {}

    def add(self, reason: str, source: Source, at: float) -> None:
        """Report this message, unless somebody has."""
        if source.message_id not in self._reported and len(self.waiting) < MAX_WAITING:
            self.waiting.setdefault(source.message_id, Refusal(reason, _shortened(source), at))

    def mark_reported(self, message_id: str) -> None:
        """The report is on `errors`, whoever wrote it."""
        self.waiting.pop(message_id, None)
        if len(self._reported) >= MAX_REPORTED:
            del self._reported[next(iter(self._reported))]
        self._reported[message_id] = None


def _shortened(source: Source) -> Source:
    """What a report needs: thousands of whole messages do not fit into memory."""
    headers = {h.SENDER: (source.headers or {}).get(h.SENDER, "")}
    return Source(source.stream, source.sequence, source.subject, headers, source.data[:EXCERPT])
