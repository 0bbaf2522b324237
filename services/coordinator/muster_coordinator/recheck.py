"""Subjects on which an unusable message came, until its sequence in the stream is known. Pure: `now` is passed in.

A live message has no sequence, and the stream stores it a little later, in a cluster perhaps seconds later, or never
(a duplicate). So the subject is read again, at growing intervals, until no such message has come for a while.
"""

from dataclasses import dataclass

MAX_SUBJECTS = 10_000
FIRST_PAUSE_SECONDS = 0.25
QUIET_SECONDS = 12.0  # an election takes up to nine


@dataclass(slots=True)
class _Check:
    added_at: float
    due_at: float


class Recheck:
    """Which subjects are to be read again, and when."""

    def __init__(self) -> None:
        self._checks: dict[str, _Check] = {}

    def __len__(self) -> int:
        return len(self._checks)

    def add(self, subject: str, now: float) -> None:
        """An unusable message came on the subject."""
        if subject in self._checks or len(self._checks) < MAX_SUBJECTS:
            self._checks[subject] = _Check(now, now)

    def take_due(self, now: float) -> str | None:
        """A subject whose check is due; if that check fails, the others come first."""
        for subject, check in self._checks.items():
            if check.due_at <= now:
                check.due_at = now + FIRST_PAUSE_SECONDS
                return subject
        return None

    def mark_checked(self, subject: str, began_at: float) -> None:
        """Everything that was stored on the subject when the check began has been read."""
        check = self._checks[subject]
        quiet = began_at - check.added_at
        if quiet >= QUIET_SECONDS:
            del self._checks[subject]
        elif quiet >= 0:
            check.due_at = began_at + max(FIRST_PAUSE_SECONDS, quiet)
