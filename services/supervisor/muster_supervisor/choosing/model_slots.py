"""Slots for calls of the supervisor's model: who waits for one gets it by the priority of the request, in turns."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from muster_agent.team.schema import Priorities
from muster_bus.lanes.turns import Turns
from muster_protocol.subjects import PRIORITIES, Priority


class ModelSlots:
    """So many calls at once, over all requests of a supervisor."""

    def __init__(self, slots: int, weights: Priorities | None = None) -> None:
        weights = weights or Priorities()
        self._free = slots
        self._turns = Turns.of([weights.high, weights.normal, weights.low])
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = tuple(deque() for _ in PRIORITIES)

    @asynccontextmanager
    async def held(self, priority: Priority) -> AsyncGenerator[None]:
        """Wait for a slot and hold it."""
        await self._take(PRIORITIES.index(priority))
        try:
            yield
        finally:
            self._give_on()

    async def _take(self, lane: int) -> None:
        if self._free > 0:
            self._free -= 1
            self._turns = self._turns.after(lane)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[lane].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting[lane]:
                self._waiting[lane].remove(turn)
            elif not turn.cancelled():  # it got the slot at the same moment
                self._give_on()
            raise

    def _give_on(self) -> None:
        while waiting := {lane for lane, turns in enumerate(self._waiting) if turns}:
            lane = self._turns.next(waiting)
            turn = self._waiting[lane].popleft()
            if not turn.done():  # else whoever waited has given up
                self._turns = self._turns.after(lane)
                turn.set_result(None)
                return
        self._free += 1
