"""The worker's heartbeat: a card in the `workers` bucket, which drops cards that are not renewed."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from muster_bus.background import supervised
from muster_bus.buckets.kv import Bucket
from muster_bus.buckets.workers import BUCKET
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError
from muster_protocol.workers.card import BEAT_SECONDS, WorkerCard
from muster_protocol.workers.role_card import RoleCard, within

log = logging.getLogger("muster.worker")

LEAVE_SECONDS = 1.0  # a card that could not be deleted expires a little later


class Registry:
    """Writes every few seconds which worker is here, with which tags and how busy."""

    def __init__(
        self, bus: Bus, tags: Sequence[str], slots: int, busy: Callable[[], int], roles: Sequence[RoleCard] = ()
    ) -> None:
        self._bus = bus
        self._tags = tuple(tags)
        self._slots = slots
        self._busy = busy
        self._roles = within(roles)
        self._bucket = Bucket(bus, BUCKET)
        self._is_unregistered = False
        self._heartbeat: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register before the first task arrives: the broker's time of the card shows which tasks are old or late."""
        await self._register()
        self._heartbeat = supervised(self._beat(), "the heartbeat of the worker")

    async def stop(self) -> None:
        """Delete the card, so that nobody waits until it expires."""
        if self._heartbeat is None:
            return
        self._heartbeat.cancel()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._bucket.delete(self._bus.sender.instance)
        except (TimeoutError, MusterError) as error:
            log.debug("the card of this worker was not deleted: %s", error)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._register()

    async def _register(self) -> None:
        name = self._bus.sender.instance
        card = WorkerCard(name=name, tags=self._tags, slots=self._slots, busy=self._busy(), roles=self._roles)
        try:
            await self._bucket.put(name, card.model_dump_json().encode(), give_up_after=BEAT_SECONDS)
            written = await self._bucket.get(name)
        except MusterError as error:
            self._warn_once(error)
            return
        self._is_unregistered = False
        if written is not None:
            self._bus.clock.observe(written.time)

    def _warn_once(self, error: MusterError) -> None:
        """The worker goes on without a card, but to others its tags look unserved."""
        if not self._is_unregistered:
            log.warning("… worker  not registered, next try in %g s: %s", BEAT_SECONDS, error)
        self._is_unregistered = True
