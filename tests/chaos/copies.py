"""Stores task messages a second time, by hand: at once, while they run, after the broker has forgotten them, late."""

import asyncio
import random
import time
from collections.abc import Mapping

from muster_bus.connection import Bus, Incoming
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.headers import MESSAGE_ID
from tests.chaos.ledger import Ledger, TaskCopy

CHANCE = 0.03  # that a message is copied
WINDOW_SECONDS = 10.0  # in which the broker knows an id again: shorter than usual, so that a run outlasts it
FORGOTTEN = "under the same id"
WAYS = {  # and how long after the first message
    "at once": (0.0, 0.3),
    "while it may run": (0.3, 2.9),
    FORGOTTEN: (WINDOW_SECONDS + 0.5, WINDOW_SECONDS + 3.0),
    "late": (3.0, 15.0),  # mostly after its result, often after the answer
}
COPY = "copy-"  # what begins the ids of copies that the broker is to take for new
GIVE_UP_AFTER_SECONDS = 10.0
MAX_WAITING = 1000


class Copies:
    """Listens to the task messages of all tags, and copies some."""

    def __init__(self, bus: Bus, ledger: Ledger, seed: int) -> None:
        self._bus = bus
        self._ledger = ledger
        self._seed = seed
        self._seen: set[str] = set()
        self._heard: asyncio.Queue[tuple[str, bytes, dict[str, str]]] = asyncio.Queue(MAX_WAITING)

    async def run(self, until: float) -> None:
        """Until a moment of the monotonic clock."""
        await self._bus.subscribe("tasks.*", self._hear)
        async with asyncio.TaskGroup() as copying:
            while (left := until - time.monotonic()) > 0:
                try:
                    subject, body, headers = await asyncio.wait_for(self._heard.get(), left)
                except TimeoutError:
                    return
                chance = random.Random(f"{self._seed} {headers[MESSAGE_ID]}")
                way = chance.choice(list(WAYS))
                delay = chance.uniform(*WAYS[way])
                if time.monotonic() + delay < until:
                    copying.create_task(self._copy(way, delay, (subject, body, headers)))

    def _hear(self, message: Incoming) -> None:
        headers = dict(message.headers or {})
        name = headers.get(MESSAGE_ID, "")
        if name in self._seen or name.startswith(COPY) or self._heard.full():
            return
        if _attempt(headers) is not None and random.Random(f"{name} {self._seed}").random() < CHANCE:
            self._seen.add(name)
            self._heard.put_nowait((message.subject, bytes(message.data), headers))

    async def _copy(self, way: str, delay: float, message: tuple[str, bytes, dict[str, str]]) -> None:
        await asyncio.sleep(delay)
        subject, body, headers = message
        attempt = _attempt(headers)
        assert attempt is not None
        own = {name: value for name, value in headers.items() if not name.startswith("Nats-")}
        own[MESSAGE_ID] = headers[MESSAGE_ID] if way == FORGOTTEN else COPY + headers[MESSAGE_ID]
        try:
            stored = await self._bus.publisher.store(subject, body, own, give_up_after=GIVE_UP_AFTER_SECONDS)
        except MusterError:
            return
        if not stored.is_duplicate:
            self._ledger.task_copies.append(TaskCopy(attempt, way, stored.sequence, time.time()))


def _attempt(headers: Mapping[str, str]) -> AttemptId | None:
    """Whose message it is; nobody's, if somebody threw it there."""
    try:
        return AttemptId.parse(headers.get(MESSAGE_ID, ""))
    except Invalid:
        return None
