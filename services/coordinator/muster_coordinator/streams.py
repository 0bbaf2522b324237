"""What the coordinator reads from the broker. No other module of it names a stream or a bucket."""

from collections.abc import Awaitable, Callable, Mapping

from muster_bus import read
from muster_bus.connection import Bus
from muster_bus.read import Raw
from muster_bus.reports import Source
from muster_bus.topology import last_sequence
from muster_protocol import subjects

WORKER_CARDS = "$KV.workers.*"
IS_DELETION = "KV-Operation"  # the header of a worker card that was taken away
ALL_REQUESTS = subjects.requests("*")
ALL_RESULTS = subjects.results("*")


def stream_of(subject: str) -> str:
    return subject.partition(".")[0].upper()


def source_of(subject: str, sequence: int, headers: Mapping[str, str], data: bytes) -> Source:
    """Where a message is stored, for the report of what is wrong with it."""
    return Source(stream_of(subject), sequence, subject, headers, data)


async def newest_sequence(bus: Bus, subject: str) -> int:
    return await last_sequence(bus, stream_of(subject))


async def next_page(bus: Bus, subject: str, after: int) -> list[Raw]:
    """The next messages of a subject, at most a thousand; none when the leader has no more."""
    return await read.next_page(bus.nc, stream_of(subject), subject, after)


async def replica_page(bus: Bus, subject: str, after: int) -> list[Raw]:
    """The next messages of a subject, at most a thousand; none when the replica that answers has no more."""
    return await read.read_subject(bus.nc, stream_of(subject), subject, after, is_page=True)


async def rest_at_leader(bus: Bus, subject: str, after: int) -> list[Raw]:
    """All further messages of a subject, also those that a replica does not have yet."""
    return await read.read_subject(bus.nc, stream_of(subject), subject, after, from_leader=True)


class StreamTail:
    """The newest part of a stream, read page by page: what was taken is not read again when a later page fails."""

    def __init__(self, bus: Bus, subject: str, length: int, take: Callable[[Raw], Awaitable[None]]) -> None:
        self._bus, self._subject, self._length, self._take = bus, subject, length, take
        self._after: int | None = None

    async def read_on(self) -> bool:
        """Take the next page; False when the stream's leader has no more."""
        if self._after is None:
            self._after = max(0, await newest_sequence(self._bus, self._subject) - self._length)
        page = await next_page(self._bus, self._subject, self._after)
        for raw in page:
            await self._take(raw)
            self._after = raw.sequence
        return bool(page)
