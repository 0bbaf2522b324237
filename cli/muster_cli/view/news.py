"""One line about something that happened to a request: its kind decides the mark and who shows it."""

from enum import Enum
from typing import NamedTuple


class NewsKind(Enum):
    """What happened; the value is the mark before the line, empty where the line begins with a word."""

    STAGE = ""  # taken, planned, answered
    TAKEN_OVER = "⇄"
    STARTED = "→"
    HANDED_BACK = "↩"
    PROGRESS = "·"
    DONE = "✓"
    FAILED = "✗"
    NOT_COUNTED = "≈"
    RETRY = "↻"
    QUESTION = "?"
    DECISION = "■"
    CONFLICT = "⚠"
    FAULT = "⚡"  # made on purpose, by `muster demo`
    WAITING = "…"


# What a plan that is redrawn in place does not show by itself.
BESIDE_THE_PLAN = frozenset(
    {
        NewsKind.TAKEN_OVER,
        NewsKind.NOT_COUNTED,
        NewsKind.RETRY,
        NewsKind.QUESTION,
        NewsKind.DECISION,
        NewsKind.CONFLICT,
        NewsKind.FAULT,
        NewsKind.WAITING,
    }
)


class News(NamedTuple):
    """What happened, in words."""

    kind: NewsKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.text}" if self.kind.value else self.text
