"""What cannot be used and is to be reported: each message once, within bounds. Pure."""

from dataclasses import dataclass

from muster_bus.reported_ids import RECENT_SECONDS
from muster_bus.reports import EXCERPT, Source
from muster_protocol import headers as h

MAX_WAITING = 10_000
MAX_TOLD = 50_000  # ids: about five megabytes


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
        self._told: dict[str, None] = {}

    def add(self, reason: str, source: Source, at: float) -> None:
        message_id = f"{source.stream}.{source.sequence}"
        if message_id not in self._told and len(self.waiting) < MAX_WAITING:
            self.waiting.setdefault(message_id, Refusal(reason, _short(source), at))

    def told(self, message_id: str) -> None:
        """It is on `errors`, by whoever reported it."""
        self.waiting.pop(message_id, None)
        if len(self._told) >= MAX_TOLD:
            del self._told[next(iter(self._told))]
        self._told[message_id] = None


def _short(source: Source) -> Source:
    """A report needs no more, and thousands of whole messages fit nowhere."""
    headers = {h.SENDER: (source.headers or {}).get(h.SENDER, "")}
    return Source(source.stream, source.sequence, source.subject, headers, source.data[:EXCERPT])
