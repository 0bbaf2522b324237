"""Subjects on which something unusable was heard, until its place in the stream is known. Pure: `now` is passed in.

What is heard has no sequence, and the stream stores it a little later, in a cluster perhaps seconds later, or never
(a duplicate). So a subject is looked at again, at growing distances, until it has been quiet for a while.
"""

from dataclasses import dataclass

MAX_SUSPECTS = 10_000
FIRST_PAUSE_SECONDS = 0.25
SETTLED_SECONDS = 12.0  # an election takes up to nine


@dataclass(slots=True)
class _Look:
    heard_at: float
    due_at: float


class Recheck:
    """Which subjects are to be looked at, and when."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def hear(self, subject: str, now: float) -> None:
        """Something unusable was said on the subject."""
        if subject in self._looks or len(self._looks) < MAX_SUSPECTS:
            self._looks[subject] = _Look(now, now)

    def next(self, now: float) -> str | None:
        """A subject whose look is due; if that look fails, the others come first."""
        for subject, look in self._looks.items():
            if look.due_at <= now:
                look.due_at = now + FIRST_PAUSE_SECONDS
                return subject
        return None

    def looked(self, subject: str, began_at: float) -> None:
        """Everything that was stored on the subject when the look began has been judged."""
        look = self._looks[subject]
        quiet = began_at - look.heard_at
        if quiet >= SETTLED_SECONDS:
            del self._looks[subject]
        elif quiet >= 0:
            look.due_at = began_at + max(FIRST_PAUSE_SECONDS, quiet)
