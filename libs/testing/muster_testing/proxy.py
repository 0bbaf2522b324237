"""A TCP proxy between a client and a broker, for tests of what can happen on the wire."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

CLOSE_SECONDS = 5.0


class Proxy:
    """Passes bytes both ways. It can cut, fall silent, delay, insert, change bytes, and be closed and opened again."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._directions: set[asyncio.Task[None]] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._random = random.Random(0)
        self._to_change = 0
        self._between = 0  # chunks that pass before the next is changed
        self.port = 0
        self.accepted = 0  # connections so far
        self.is_silent = False  # half-open: connections stand, and nothing passes either way
        self.drops_replies = False
        self.delay_seconds = 0.0  # until what the broker says passes on
        self._replaced: tuple[bytes, bytes] | None = None  # in what a client says …
        self._replaced_in_replies: tuple[bytes, bytes] | None = None  # … and in what the broker says
        self.sent = bytearray()  # by the client, as it went over the wire

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def has_changes_left(self) -> bool:
        return self._to_change > 0

    @property
    def has_replacement_left(self) -> bool:
        return self._replaced is not None or self._replaced_in_replies is not None

    async def open(self) -> None:
        self.drops_replies = self.is_silent = False
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Cut every connection and accept no new one."""
        if self._server is not None:
            self._server.close()
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections, timeout=CLOSE_SECONDS)

    def cut(self) -> None:
        """End every connection; new ones are accepted."""
        for direction in self._directions:
            direction.cancel()

    def insert(self, line: bytes) -> None:
        """Say a line to every client, as if the broker had said it between two messages."""
        for client in self._clients:
            client.write(line)

    def change_bytes(self, count: int, seed: int, *, between: int = 3) -> None:
        """Change so many single bytes of what passes from now on, in either direction; `between` chunks are spared."""
        self._random = random.Random(seed)
        self._to_change = count
        self._between = between

    def replace(self, before: bytes, after: bytes) -> None:
        """Change these bytes once, where a client says them next."""
        self._replaced = before, after

    def replace_in_replies(self, before: bytes, after: bytes) -> None:
        """Change these bytes once, where the broker says them next."""
        self._replaced_in_replies = before, after

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        connection = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:  # the broker is away: so is its proxy
            writer.close()
            return
        directions = {
            asyncio.create_task(_copy(reader, broker_writer, self._from_client, lambda: 0.0)),
            asyncio.create_task(_copy(broker_reader, writer, self._from_broker, lambda: self.delay_seconds)),
        }
        self._directions |= directions
        self._clients.add(writer)
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        self._clients.discard(writer)
        for direction in directions:
            direction.cancel()
        for end in (writer, broker_writer):
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()
        self._directions -= directions

    def _from_client(self, chunk: bytes) -> bytes:
        self.sent += chunk
        if self._replaced is not None and self._replaced[0] in chunk:
            chunk, self._replaced = chunk.replace(*self._replaced, 1), None
        return b"" if self.is_silent else self._changed(chunk)

    def _from_broker(self, chunk: bytes) -> bytes:
        if self._replaced_in_replies is not None and self._replaced_in_replies[0] in chunk:
            chunk, self._replaced_in_replies = chunk.replace(*self._replaced_in_replies, 1), None
        return b"" if self.is_silent or self.drops_replies else self._changed(chunk)

    def _changed(self, chunk: bytes) -> bytes:
        if self._to_change == 0 or self._random.randint(0, self._between) > 0:
            return chunk
        self._to_change -= 1
        place = self._random.randrange(len(chunk))
        changed = chunk[place] ^ self._random.randint(1, 255)
        return chunk[:place] + bytes([changed]) + chunk[place + 1 :]


async def _copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    passing: Callable[[bytes], bytes],
    delay_seconds: Callable[[], float],
) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65_536):
            await asyncio.sleep(delay_seconds())
            if passed := passing(chunk):
                writer.write(passed)
                await writer.drain()


@asynccontextmanager
async def running_proxy(broker_port: int) -> AsyncGenerator[Proxy]:
    """An open proxy in front of a broker."""
    proxy = Proxy(broker_port)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
