"""Kaizen's shared memory pool: here the streams of a team that runs, over one connection for the whole process."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

from muster_client.client import Client
from muster_protocol.errors import BrokerAway
from muster_protocol.fold import Entry, RequestState, apply

T = TypeVar("T")
CONNECT_SECONDS = 30.0
CLOSE_SECONDS = 10.0


@dataclass
class Watched:
    """A request that somebody waits for: its log, folded as it grows."""

    state: RequestState
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    following: asyncio.Task[None] | None = None
    failed: BaseException | None = None  # why nobody follows it any more

    async def follow(self, client: Client) -> None:
        try:
            async for update in client.updates(self.state.request_id):
                if isinstance(update, Entry):
                    async with self.changed:
                        apply(self.state, update)
                        self.changed.notify_all()
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            async with self.changed:
                self.failed = error
                self.changed.notify_all()

    async def until(self, is_so: Callable[[RequestState], bool]) -> RequestState:
        """The state when it is so, or when it is answered: then nothing changes any more."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.failed or self.state.answer is not None or is_so(self.state))
        if self.failed is not None and not is_so(self.state):
            raise self.failed
        return self.state


class Line:
    """A connection with an event loop of its own, and what was delegated over it."""

    def __init__(self, url: str | None, team: str | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="muster-seeds", daemon=True)
        self._thread.start()
        self._watched: dict[str, Watched] = {}
        self.lock = threading.Lock()
        self.requests: list[str] = []  # what was delegated here, in this order
        self.executed: set[tuple[str, str]] = set()  # tasks whose result somebody has taken
        self.moved: dict[tuple[str, str], tuple[str, str]] = {}  # reassigned tasks: where they went, and to whom
        try:
            self.client = self._run(Client.connect(url, team=team, name="seeds"), CONNECT_SECONDS)
        except BaseException:
            self._end()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it on the loop; whoever calls waits. The client's own limits bound it."""
        return self._run(work, None)

    async def watched(self, request_id: str) -> Watched:
        """The request, followed since somebody first asked for it."""
        found = self._watched.get(request_id)
        if found is None or found.failed is not None:
            found = self._watched[request_id] = Watched(RequestState(request_id))
            found.following = asyncio.create_task(found.follow(self.client))
        return found

    async def until(self, request_id: str, is_so: Callable[[RequestState], bool]) -> RequestState:
        """Wait for a request to get there, until some seconds after its deadline; raises NoAnswer."""
        watched = await self.watched(request_id)
        return await self.client.in_time(request_id, watched.until(is_so))

    def close(self) -> None:
        with suppress(TimeoutError, BrokerAway):
            self._run(self._close(), CLOSE_SECONDS)
        self._end()

    async def _close(self) -> None:
        following = [watched.following for watched in self._watched.values() if watched.following is not None]
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await self.client.close()

    def _run(self, work: Coroutine[Any, Any, T], limit: float | None) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("these functions block; a program that uses asyncio takes muster_client.Client")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(limit)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        self._loop.close()


class SharedMemoryPool:
    """What supervisor, workers and coordinator share. Pools of one address and team are one."""

    _lines: ClassVar[dict[tuple[str | None, str | None], Line]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, url: str | None = None, team: str | None = None) -> None:
        """Of `url` and `team`, else of MUSTER_NATS_URL and MUSTER_TEAM; raises BrokerAway."""
        self._key = (url, team)
        with self._lock:
            if self._key not in self._lines:
                self._lines[self._key] = Line(url, team)
            self.line = self._lines[self._key]

    def close(self) -> None:
        """End the connection, for all pools of this address and team; what runs goes on."""
        with self._lock:
            line = self._lines.pop(self._key, None)
        if line is not None:
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
