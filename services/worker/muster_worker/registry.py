"""The worker's sign of life: a card in the `workers` bucket, which forgets who falls silent."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from muster_bus.background import supervised
from muster_bus.connection import Bus
from muster_bus.kv import Bucket
from muster_bus.workers import BUCKET
from muster_protocol.errors import MusterError
from muster_protocol.worker_card import WorkerCard

log = logging.getLogger("muster.worker")

BEAT_SECONDS = 5.0  # the bucket forgets after fifteen
LEAVE_SECONDS = 1.0  # a card that could not be taken back is forgotten a little later


class Registry:
    """Says every few seconds who is here, with which tags and how busy."""

    def __init__(self, bus: Bus, tags: Sequence[str], slots: int, busy: Callable[[], int]) -> None:
        self._bus = bus
        self._tags = tuple(tags)
        self._slots = slots
        self._busy = busy
        self._bucket = Bucket(bus, BUCKET)
        self._is_missed = False
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register before the first task comes: the broker's time of it tells what is old and what is late."""
        await self._register()
        self._beating = supervised(self._beat(), "the sign of life")

    async def stop(self) -> None:
        """Leave at once instead of being missed."""
        if self._beating is None:
            return
        self._beating.cancel()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._bucket.delete(self._bus.sender.instance)
        except (TimeoutError, MusterError) as error:
            log.debug("not unregistered: %s", error)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._register()

    async def _register(self) -> None:
        name = self._bus.sender.instance
        card = WorkerCard(name=name, tags=self._tags, slots=self._slots, busy=self._busy())
        try:
            await self._bucket.put(name, card.model_dump_json().encode(), give_up_after=BEAT_SECONDS)
            written = await self._bucket.get(name)
        except MusterError as error:
            self._miss(error)
            return
        self._is_missed = False
        if written is not None:
            self._bus.clock.observe(written.time)

    def _miss(self, error: MusterError) -> None:
        """Said once: it works on, but nobody sees it, and its tags look unserved."""
        if not self._is_missed:
            log.warning("… worker  not registered, tried again every %g s: %s", BEAT_SECONDS, error)
        self._is_missed = True
