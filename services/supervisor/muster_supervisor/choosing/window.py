"""How many tasks of one request may be at its workers: what waits there, first in, first out, delays all others.

Pure. A request of ten thousand tasks puts no more on the queue than its workers are about to take. What comes after it
waits for these, not for the rest.
"""

from collections.abc import Callable, Iterable
from math import ceil

from muster_protocol.workers.card import WorkerCard

AHEAD = 0.25  # of the slots have their next task already; with a half, others wait half as long again
WAY_SECONDS = 0.01  # from a result to its owner, and on to the next task at a worker: quick tasks need more ahead
MOST_AHEAD = 20.0  # the request's `in_flight` is less
LEAST = 4


class Windows:
    """The windows of all requests of a supervisor, by the workers that it saw last and what tasks took."""

    def __init__(self, seconds_of: Callable[[str], float | None] = lambda _tag: None) -> None:
        self._seconds_of = seconds_of
        self._cards: tuple[WorkerCard, ...] = ()
        self._known: dict[frozenset[str], int | None] = {}

    def see(self, cards: Iterable[WorkerCard]) -> None:
        self._cards = tuple(cards)
        self._known.clear()

    def of(self, tags: frozenset[str]) -> int | None:
        """For a request whose tasks have these tags; None: no worker of theirs is known, and no window either."""
        if tags not in self._known:
            known = [seconds for tag in tags if (seconds := self._seconds_of(tag)) is not None]
            self._known[tags] = window(self._cards, tags, min(known, default=None))
        return self._known[tags]


def window(cards: Iterable[WorkerCard], tags: frozenset[str], seconds: float | None) -> int | None:
    """The slots for these tags, and what they do while a result is on its way; `seconds`: what a task takes."""
    slots = sum(card.slots for card in cards if not tags.isdisjoint(card.tags))
    ahead = AHEAD if seconds is None else max(AHEAD, WAY_SECONDS / max(seconds, WAY_SECONDS / MOST_AHEAD))
    return max(LEAST, ceil(slots * (1 + ahead))) if slots else None
