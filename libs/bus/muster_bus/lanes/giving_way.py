"""The low messages that may give way to high ones, and who of them does."""

import asyncio
from collections.abc import Callable, Collection

from muster_bus.lease import Delivery

MOST_DELIVERIES = 3  # what was given out more often goes on to its end, so that nothing gives way for ever


class GivingWay:
    """Who may give way; the one that was taken last does it first."""

    def __init__(self, give_way: Callable[[Delivery], bool]) -> None:
        self._give_way = give_way
        self._may: dict[asyncio.Task[None], tuple[int, Delivery]] = {}  # each with its consumer

    def add(self, task: asyncio.Task[None], consumer: int, delivery: Delivery) -> None:
        if delivery.number <= MOST_DELIVERIES:
            self._may[task] = consumer, delivery

    def ended(self, task: asyncio.Task[None]) -> None:
        self._may.pop(task, None)

    def count(self, consumers: Collection[int]) -> int:
        """How many of some consumers' messages may give way."""
        return sum(consumer in consumers for consumer, _ in self._may.values())

    def make_room(self, consumers: Collection[int]) -> asyncio.Task[None] | None:
        """Tell one of these to give way, and return the handler that is about to end; None: there is none."""
        for task, (consumer, delivery) in reversed(list(self._may.items())):
            if consumer in consumers:
                del self._may[task]
                if self._give_way(delivery):
                    return task
        return None
