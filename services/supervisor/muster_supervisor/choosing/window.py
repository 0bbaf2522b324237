"""How many tasks of one request may be at its workers: what waits there, first in, first out, delays all others.

A request of ten thousand tasks puts no more on the queue than its workers are about to take. What comes after it waits
for these, not for the rest.
"""

from collections.abc import Iterable
from math import ceil

from muster_protocol.workers.card import WorkerCard

AHEAD = 1.25  # tasks for each slot: a quarter has its next task already; with a half, others wait half as long again
LEAST = 4


class Windows:
    """The windows of all requests of a supervisor, by the workers that it saw last."""

    def __init__(self) -> None:
        self._cards: tuple[WorkerCard, ...] = ()
        self._known: dict[frozenset[str], int | None] = {}

    def see(self, cards: Iterable[WorkerCard]) -> None:
        self._cards = tuple(cards)
        self._known.clear()

    def of(self, tags: frozenset[str]) -> int | None:
        """For a request whose tasks have these tags; None: no worker of theirs is known, and no window either."""
        if tags not in self._known:
            self._known[tags] = window(self._cards, tags)
        return self._known[tags]


def window(cards: Iterable[WorkerCard], tags: frozenset[str]) -> int | None:
    """A quarter more than there are slots for these tags."""
    slots = sum(card.slots for card in cards if not tags.isdisjoint(card.tags))
    return max(LEAST, ceil(AHEAD * slots)) if slots else None
