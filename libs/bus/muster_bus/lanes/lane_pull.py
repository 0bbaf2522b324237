"""Pull from the lanes of several tags: waiting high messages first, and of the low ones as many as their weight says.

A slot that is free is offered to one lane after the other, by turns (`turns.py`), with looks: pulls that the broker
answers at once, with messages or with none. What was found empty is not looked at again for some milliseconds. If all
lanes are empty, the free slots wait in pulls that last a quarter of a second, on all lanes by their weights. So a high
message that comes while a slot is free, or before one is, starts as soon as the broker has answered.

Where high ones may take the place of low ones, a process without a free slot goes on looking at its high lanes, twenty
times in a second, for at most as many as there are low messages that may give way (`giving_way.py`). A look finds only
what no other process waits for.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field

from muster_bus.broker.queues import Queue, lane_of_consumer
from muster_bus.connection import Bus
from muster_bus.lanes.giving_way import GivingWay
from muster_bus.lanes.turns import Turns
from muster_bus.lease import Delivery, left_behind
from muster_bus.pull import Handler, OpenPull, Pull
from muster_bus.slot_shares import shares
from muster_protocol.subjects import PRIORITIES, Priority

HIGH, LOW = PRIORITIES.index("high"), PRIORITIES.index("low")
REST_SECONDS = 0.25  # a pull that waits in one lane keeps its slots from the others for so long
LOOK_SECONDS = 0.5  # a look that has no answer by then was lost
HIGH_EMPTY_SECONDS = 0.005  # what was found empty is not looked at for so long …
EMPTY_SECONDS = 0.02  # … and in the other lanes so long for each of their consumers: at most fifty looks in a second
ROOM_SECONDS = 5.0  # a role may clean up for as long; then the high message is handed back, for others to take
BEYOND_SECONDS = 0.05  # between two looks at the high lanes while no slot is free


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that a process pulls from, their weights, and who there can be told to give way."""

    queue: Queue
    weights: Mapping[Priority, int]
    may_give_way: frozenset[str] = frozenset()  # the consumers of low messages whose handling can be stopped
    give_way: Callable[[Delivery], bool] = field(default=lambda _: False)  # stops the handling of one; False: too late


class LanePull(Pull):
    """A pull loop over lanes; see `Pull` for what holds of all."""

    def __init__(
        self, bus: Bus, lanes: Lanes, slots: int, ack_wait: float, handler: Handler, note_returned: Handler
    ) -> None:
        super().__init__(bus, lanes.queue, slots, ack_wait, handler, note_returned)
        found = [lane_of_consumer(name) for name in lanes.queue.consumers]
        self._lane = [PRIORITIES.index(lane[1]) if lane is not None else LOW for lane in found]
        self._turns = Turns.of([lanes.weights[priority] for priority in PRIORITIES])
        self._weight_of = [lanes.weights[PRIORITIES[lane]] for lane in self._lane]
        self._has_more = [False] * len(self._lane)  # by consumer: it had more than it gave out last
        self._empty_until = [0.0] * len(self._lane)
        others = EMPTY_SECONDS * len(self._lane)
        self._believed = [HIGH_EMPTY_SECONDS if lane == HIGH else others for lane in self._lane]
        self._low = {i for i, name in enumerate(lanes.queue.consumers) if name in lanes.may_give_way}
        self._giving_way = GivingWay(lanes.give_way)
        self._beyond: set[str] = set()  # looks for which there is no slot but that of a low message
        self._next_beyond = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def free(self) -> int:
        opened = sum(pull.open for token, pull in self._pulls.items() if token not in self._beyond)
        return self.slots - len(self.running) - opened

    async def close(self) -> list[asyncio.Task[None]]:
        if self._timer is not None:
            self._timer.cancel()
        return await super().close()

    async def _again(self) -> None:
        self._beyond.clear()
        await super()._again()

    def _fill(self) -> None:
        if self._is_closing or not self._bus.connected.is_set():
            return
        self._first = (self._first + 1) % len(self._lane)
        for _ in range(len(self._lane) + 1):  # what a cap leaves over is shared out once more
            if self.free <= 0 or not self._share_out():
                break
        self._look_beyond()

    def _share_out(self) -> bool:
        """Offer the free slots to the lanes whose turn it is; False: there is nothing to ask."""
        now, waiting_at = time.monotonic(), {pull.consumer for pull in self._pulls.values()}
        asked = [i for i in self._in_turn() if self._empty_until[i] <= now and self._room(i) > 0]
        asked = [i for i in asked if i not in waiting_at or self._has_more[i]]
        looked_at = [pull for pull in self._pulls.values() if pull.is_look]
        if not asked and not looked_at:
            return self._rest()
        turns = self._turns
        for pull in looked_at:  # as if all of it came: the answer will tell
            turns = turns.after(self._lane[pull.consumer], pull.open)
        contending = {self._lane[i] for i in asked} | {self._lane[pull.consumer] for pull in looked_at}
        found = False
        for lane, share in enumerate(turns.shares(self.free, contending)):
            found = self._look([i for i in asked if self._lane[i] == lane], share) or found
        return found

    def _in_turn(self) -> list[int]:
        """All consumers, another one first each time."""
        return [(self._first + offset) % len(self._lane) for offset in range(len(self._lane))]

    def _look(self, consumers: list[int], share: int) -> bool:
        """Look at the consumers of one lane; those that have more come before those that may."""
        if not consumers or share < 1:
            return False
        consumers = [i for i in consumers if self._has_more[i]] or consumers
        is_asked = False
        for consumer, count in zip(consumers, shares(share, [1] * len(consumers), 0), strict=True):
            allowed = min(count, self._room(consumer))
            if allowed > 0:
                self._ask(consumer, allowed, LOOK_SECONDS, is_look=True)
                is_asked = True
        return is_asked

    def _rest(self) -> bool:
        """All lanes are empty: wait in all of them, as far as there are slots."""
        consumers = [i for i in self._in_turn() if self._room(i) > 0]
        if not consumers:
            return False
        consumers.sort(key=lambda i: self._lane[i])  # stable: of each lane another one is first in its turn
        for consumer, count in zip(
            consumers, shares(self.free, [self._weight_of[i] for i in consumers], 0), strict=True
        ):
            allowed = min(count, self._room(consumer))
            if allowed > 0:
                self._ask(consumer, allowed, min(REST_SECONDS, self._expiry))
        return True

    def _look_beyond(self) -> None:
        """Look whether high messages wait for which there is no slot but that of a low one."""
        if not self._giving_way.count(self._low):
            return
        now = time.monotonic()
        is_due = now >= self._next_beyond
        if is_due:
            self._next_beyond = now + BEYOND_SECONDS
        for consumer in self._in_turn():
            has_slot = self._lane[consumer] != HIGH or (self.free > 0 and self._room(consumer) > 0)
            if has_slot or not (is_due or self._has_more[consumer]):
                continue
            if self._giving_way.count(self._replaceable(consumer)) > len(self._beyond):
                self._beyond.add(str(self._count + 1))
                self._ask(consumer, 1, LOOK_SECONDS, is_look=True)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._next_beyond - now, self._fill)

    def _replaceable(self, consumer: int) -> set[int]:
        """The low consumers whose slots a high one can take: where a cap is reached, those under the same cap."""
        full = [
            capped
            for capped, limit in self._caps
            if consumer in capped and sum(self._held[index] for index in capped) >= limit
        ]
        return self._low.intersection(*full)

    def _ask(self, consumer: int, share: int, expiry: float, *, is_look: bool = False) -> None:
        super()._ask(consumer, share, expiry, is_look=is_look)
        self._beyond &= self._pulls.keys()  # what could not be asked is not waited for

    def _finish(self, token: str, pull: OpenPull) -> None:
        self._pulls.pop(token, None)
        self._beyond.discard(token)
        if pull.open > 0:
            self._has_more[pull.consumer] = False
            self._empty_until[pull.consumer] = time.monotonic() + self._believed[pull.consumer]
        if pull.is_look:
            asyncio.get_running_loop().call_soon(self._fill)

    def _learn(self, delivery: Delivery, consumer: int) -> None:
        """Each message says whether its consumer has more."""
        self._has_more[consumer] = has_more = left_behind(delivery.lease.reply) > 0
        self._empty_until[consumer] = 0.0 if has_more else time.monotonic() + self._believed[consumer]

    def _refuse(self, delivery: Delivery, consumer: int) -> None:
        self._learn(delivery, consumer)
        is_high = self._lane[consumer] == HIGH and not self._is_closing
        ending = self._giving_way.make_room(self._replaceable(consumer)) if is_high else None
        if ending is None:
            super()._refuse(delivery, consumer)
        else:
            self._begin(delivery, consumer, self._run_after(ending, delivery))

    def _begin(self, delivery: Delivery, consumer: int, handling: Coroutine[None, None, None]) -> asyncio.Task[None]:
        self._learn(delivery, consumer)
        self._turns = self._turns.after(self._lane[consumer])
        task = super()._begin(delivery, consumer, handling)
        if consumer in self._low and not self._is_high_waiting():  # else it has the share that is its due
            self._giving_way.add(task, consumer, delivery)
        return task

    def _is_high_waiting(self) -> bool:
        return any(has_more for has_more, lane in zip(self._has_more, self._lane, strict=True) if lane == HIGH)

    def _freed(self, consumer: int, delivery: Delivery, task: asyncio.Task[None]) -> None:
        super()._freed(consumer, delivery, task)
        self._giving_way.ended(task)

    async def _run_after(self, ending: asyncio.Task[None], delivery: Delivery) -> None:
        """Handle a high message as soon as a low one has given way; what waits too long is handed back."""
        try:
            await asyncio.wait([ending], timeout=ROOM_SECONDS)
        except asyncio.CancelledError:  # the process stops
            await self._return_unread(delivery)
            raise
        if self._is_closing or not ending.done():
            await self._return_unread(delivery)
        elif delivery.lease.is_held:
            await self._run(delivery)
        else:  # the process was paused: somebody else has it
            delivery.lease.drop()
