"""The coordinator: follows what the other services publish, keeps the overview, finds conflicts, serves the API."""

import asyncio
import logging
import math
import time
from collections import deque
from contextlib import AsyncExitStack
from functools import partial

from muster_bus.background import supervised
from muster_bus.broker.queues import last_sequence, until_there
from muster_bus.broker.storing import keep_asking
from muster_bus.buckets.conflicts import follow_conflicts
from muster_bus.buckets.workers import follow_workers
from muster_bus.connection import Bus
from muster_bus.process.health import Health
from muster_bus.receive import HeaderGate
from muster_bus.tail import follow_all
from muster_client import Client
from muster_coordinator.backfill import Backfill
from muster_coordinator.conflicts.recall import Recall
from muster_coordinator.conflicts.resolve import Resolver
from muster_coordinator.http_server import HttpServer
from muster_coordinator.observe import Observer
from muster_protocol import subjects
from muster_protocol.conflict import Conflict
from muster_protocol.errors import MusterError

log = logging.getLogger("muster.coordinator")

STEP_SECONDS = 10.0  # one read or report; a broker that is slower is away
TURN_SECONDS = 1.0
PAUSE_SECONDS = 0.5
MAX_WARNINGS = 100


class Coordinator:
    """Watches one installation. Several can run side by side; none of the others needs one."""

    def __init__(self, bus: Bus, host: str = "127.0.0.1", port: int = 8080) -> None:
        self.bus = bus
        self.client = Client(bus)
        self.observer = Observer(bus.clock, HeaderGate.of(bus))
        self._resolver = Resolver(bus, self.observer.evidence)
        self._recall = Recall(bus, self.observer)
        self.health = Health(self)
        self.stopping = asyncio.Event()
        self._backfill = Backfill(bus, self.observer)
        self._missed = self._backfill.everything()
        self._duties = deque(
            (
                self._read_missed,
                self._read_log,
                self._recall.read_next,
                self._backfill.recheck,
                self._resolve_conflict,
                self._resolver.repeat_abort,
            )
        )
        self._warnings: set[str] = set()  # those that were logged since all duties were last done
        self._last_turn_at = time.monotonic()
        self._following = AsyncExitStack()
        self._loop: asyncio.Task[None] | None = None
        self._http_server = HttpServer(self, host, port)

    @property
    def last_turn_at(self) -> float:
        return self._last_turn_at if self._loop is not None else time.monotonic()

    @property
    def address(self) -> str:
        """Where the API is, once started."""
        return self._http_server.address

    async def start(self) -> None:
        await self._http_server.open()  # first: its probes are asked while there is no broker
        await self.bus.open()
        await until_there(self.bus, partial(last_sequence, self.bus, subjects.ALL_RESULTS), math.inf)
        for subscription in (
            await follow_all(self.bus, self.observer.on_live_entry),
            await self.bus.watch(subjects.ALL_EVENTS, self.observer.on_message),
            await self.bus.watch(subjects.ALL_CONTROL, self.observer.on_message),
            await follow_workers(self.bus, self._on_worker_card),
            await follow_conflicts(self.bus, self._on_conflict),
        ):
            self._following.push_async_callback(self.bus.unsubscribe, subscription)
        self.bus.on_reconnect(self._on_reconnect)
        self._following.callback(self.bus.forget_reconnect, self._on_reconnect)
        await self.bus.flush()
        storing = supervised(keep_asking(self.bus), "asking whether the broker stores")
        self._following.callback(storing.cancel)
        self._loop = asyncio.get_running_loop().create_task(self._run())
        log.info("ready: %s", self.address)

    async def stop(self, grace_seconds: float) -> None:
        self.health.is_stopping = True
        self.stopping.set()
        await self._http_server.close(grace_seconds / 2)
        await self._following.aclose()
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop], timeout=1.0)

    async def refresh_waiting(self) -> None:
        """Read the queue for requests that nobody has taken yet."""
        await self._backfill.waiting_requests()

    def _on_conflict(self, record: Conflict) -> None:
        self._resolver.on_record(record)
        if self.observer.evidence.suspects:
            self.observer.has_work.set()

    def _on_worker_card(self, worker: str) -> None:
        self.observer.evidence.see_worker(worker)
        self._resolver.on_worker_card(worker)
        if self.observer.evidence.suspects:
            self.observer.has_work.set()

    async def _on_reconnect(self) -> None:
        self.observer.overview.mark_all_stale()
        self._resolver.load_again()
        self._missed = self._backfill.everything()
        self.observer.has_work.set()

    async def _run(self) -> None:
        """Do whatever needs the broker, one step at a time, each with a time limit."""
        while True:
            self._last_turn_at = time.monotonic()
            self.observer.has_work.clear()
            try:
                async with asyncio.timeout(STEP_SECONDS):
                    if not await self._step():
                        self._warnings.clear()  # every duty is done; after one alone another may still be failing
                        await self._wait_for_work()
            except (TimeoutError, MusterError) as error:
                self._warn_once(str(error) or "the broker did not answer in time")
                await asyncio.sleep(PAUSE_SECONDS)
            except Exception:
                log.exception("a background step failed because of a bug; trying again")
                await asyncio.sleep(PAUSE_SECONDS)

    def _warn_once(self, reason: str) -> None:
        """Each reason once, until all duties are done again: a step is tried for ever."""
        if reason not in self._warnings and len(self._warnings) < MAX_WARNINGS:
            self._warnings.add(reason)
            log.warning("… a background step failed; trying again: %s", reason)

    async def _wait_for_work(self) -> None:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self.observer.has_work.wait()
        except TimeoutError:
            return

    async def _step(self) -> bool:
        """One step of the next duty that has any: one that fails does not hold up the others. False: none has."""
        if not self.bus.connected.is_set():
            return False
        for _ in range(len(self._duties)):
            self._duties.rotate(-1)
            if await self._duties[-1]():
                return True
        return False

    async def _read_missed(self) -> bool:
        if not self._missed:
            return False
        tail = self._missed[0]
        if not await tail.read_on() and tail in self._missed:  # else a reconnect has put others in its place
            self._missed.remove(tail)
        return True

    async def _read_log(self) -> bool:
        if not self.observer.overview.unread:
            return False
        await self._backfill.unread_log()
        return True

    async def _resolve_conflict(self) -> bool:
        """Once everything missed is read: half the evidence may look like a conflict."""
        if self._missed:
            return False
        while self.observer.same_work:
            self._resolver.add(self.observer.same_work.pop())
        while self.observer.announced:
            self._resolver.on_event(*self.observer.announced.popitem())
        return await self._resolver.load() or await self._resolver.resolve_next()
