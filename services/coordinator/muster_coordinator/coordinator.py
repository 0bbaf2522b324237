"""The coordinator: follows what all others say, keeps the picture, catches work done twice, and opens the door."""

import asyncio
import logging
import time
from collections import deque
from contextlib import AsyncExitStack

from muster_bus.connection import Bus
from muster_bus.health import Health
from muster_client import Client
from muster_coordinator.backfill import Backfill
from muster_coordinator.http_server import HttpServer
from muster_coordinator.observe import Observer
from muster_protocol import subjects
from muster_protocol.errors import MusterError

log = logging.getLogger("muster.coordinator")

REGISTRY = "$KV.workers.*"
STEP_SECONDS = 10.0  # one read or report; a broker that is slower is away
TURN_SECONDS = 1.0
PAUSE_SECONDS = 0.5
GIVE_UP_AFTER_SECONDS = 5.0
MAX_COMPLAINTS = 100


class Coordinator:
    """Watches one installation. Several can run side by side; none of the others needs one."""

    def __init__(self, bus: Bus, host: str = "127.0.0.1", port: int = 8080) -> None:
        self.bus = bus
        self.client = Client(bus)
        self.observer = Observer(bus.clock)
        self.health = Health(self)
        self.stopping = asyncio.Event()
        self._backfill = Backfill(bus, self.observer)
        self._missed = self._backfill.everything()
        self._duties = deque((self._read_missed, self._read_log, self._look, self._tell_conflict, self._report))
        self._complaints: set[str] = set()
        self._last_turn_at = time.monotonic()
        self._following = AsyncExitStack()
        self._keeper: asyncio.Task[None] | None = None
        self._http_server = HttpServer(self, host, port)

    @property
    def last_turn_at(self) -> float:
        return self._last_turn_at

    @property
    def address(self) -> str:
        """Where the API is, once started."""
        return self._http_server.address

    async def start(self) -> None:
        await self._http_server.open()
        observer = self.observer
        for subject, heard in (
            (subjects.ALL_LIVE, observer.on_live),
            (subjects.ALL_EVENTS, observer.on_said),
            (subjects.ALL_CONTROL, observer.on_said),
            (REGISTRY, observer.on_beat),
        ):
            subscription = await self.bus.subscribe(subject, heard)
            self._following.push_async_callback(self.bus.unsubscribe, subscription)
        self.bus.on_reconnect(self._on_reconnect)
        self._following.callback(self.bus.forget_reconnect, self._on_reconnect)
        await self.bus.flush()
        self._keeper = asyncio.get_running_loop().create_task(self._keep())
        log.info("ready: %s", self.address)

    async def stop(self, grace_seconds: float) -> None:
        self.health.is_stopping = True
        self.stopping.set()
        await self._http_server.close(grace_seconds / 2)
        await self._following.aclose()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper], timeout=1.0)

    async def refresh_waiting(self) -> None:
        """Look again for requests that nobody has taken yet."""
        await self._backfill.waiting_requests()

    async def _on_reconnect(self) -> None:
        self.observer.overview.mark_all_stale()
        self._missed = self._backfill.everything()
        self.observer.news.set()

    async def _keep(self) -> None:
        """The coordinator's loop: whatever needs the broker, one step at a time, each with a limit."""
        while True:
            self._last_turn_at = time.monotonic()
            self.observer.news.clear()
            try:
                async with asyncio.timeout(STEP_SECONDS):
                    if not await self._step():
                        self._complaints.clear()  # every duty is done; after one alone another may still be failing
                        await self._wait_for_news()
            except (TimeoutError, MusterError) as error:
                self._complain(str(error) or "the broker did not answer in time")
                await asyncio.sleep(PAUSE_SECONDS)
            except Exception:
                log.exception("a step of the watch broke")
                await asyncio.sleep(PAUSE_SECONDS)

    def _complain(self, reason: str) -> None:
        """Each once, until all is well again: this is tried for ever."""
        if reason not in self._complaints and len(self._complaints) < MAX_COMPLAINTS:
            self._complaints.add(reason)
            log.warning("… the watch tries again: %s", reason)

    async def _wait_for_news(self) -> None:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self.observer.news.wait()
        except TimeoutError:
            return

    async def _step(self) -> bool:
        """One thing for the next duty that has any: one that fails does not hold up the others. False: all idle."""
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

    async def _look(self) -> bool:
        return await self._backfill.recheck()

    async def _tell_conflict(self) -> bool:
        """Once everything missed is read: another may have told it."""
        if self._missed or not self.observer.found:
            return False
        found = next(iter(self.observer.found.values()))
        subject = subjects.events(found.request_id)
        await self.bus.store(
            subject,
            found,
            request_id=found.request_id,
            message_id=found.message_id,
            give_up_after=GIVE_UP_AFTER_SECONDS,
        )
        self.observer.found.pop(found.message_id, None)  # unless it was heard, and gone, before the broker's word came
        return True

    async def _report(self) -> bool:
        pending_reports = self.observer.pending_reports
        if not pending_reports.waiting:
            return False
        message_id, refusal = next(iter(pending_reports.waiting.items()))
        if not refusal.is_recent(self.bus.clock.now()):
            await self._backfill.told_errors()
        if message_id in pending_reports.waiting:
            request_id = subjects.last_token(refusal.source.subject)
            await self.bus.report(refusal.reason, refusal.source, request_id=request_id)
            pending_reports.told(message_id)
        return True
