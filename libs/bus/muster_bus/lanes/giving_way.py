"""The low messages that may give way to high ones, and the high ones that wait until they have."""

import asyncio
from collections import deque
from collections.abc import Callable

from muster_bus.lease import Delivery

ROOM_SECONDS = 5.0  # a role may clean up for as long; then the high message is handed back, for others to take
MOST_DELIVERIES = 3  # what was given out more often goes on to its end, so that nothing gives way for ever


class GivingWay:
    """Who may give way, the one that was taken last first."""

    def __init__(self, give_way: Callable[[Delivery], bool]) -> None:
        self._give_way = give_way
        self._may: dict[asyncio.Task[None], Delivery] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def count(self) -> int:
        """How many may give way."""
        return len(self._may)

    def add(self, task: asyncio.Task[None], delivery: Delivery) -> None:
        if delivery.number <= MOST_DELIVERIES:
            self._may[task] = delivery

    def ended(self, task: asyncio.Task[None]) -> None:
        self._may.pop(task, None)

    def make_room(self) -> bool:
        """Tell one to give way; False: there is none that still can."""
        while self._may:
            _, delivery = self._may.popitem()
            if self._give_way(delivery):
                return True
        return False

    async def room(self) -> None:
        """Wait for a slot; TimeoutError: what was to give way did not."""
        admitted = asyncio.get_running_loop().create_future()
        self._waiting.append(admitted)
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                await admitted
        finally:
            if admitted in self._waiting:
                self._waiting.remove(admitted)

    def admit(self, free: int) -> None:
        """Let as many go on as there are slots for; those that wait count as running, so `free` is below zero."""
        for _ in range(min(free + len(self._waiting), len(self._waiting))):
            admitted = self._waiting.popleft()
            if not admitted.done():  # else it has waited too long
                admitted.set_result(None)
