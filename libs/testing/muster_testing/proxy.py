"""A TCP proxy between a client and a broker, for tests of lost connections and lost replies."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

CLOSE_SECONDS = 5.0


class Proxy:
    """Passes bytes both ways; it can be closed, opened again on its port, and told to drop replies."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._directions: set[asyncio.Task[None]] = set()
        self.port = 0
        self.drops_replies = False
        self.sent = bytearray()  # by the client, as it went over the wire

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def open(self) -> None:
        self.drops_replies = False
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Cut every connection and accept no new one."""
        if self._server is not None:
            self._server.close()
        for direction in self._directions:
            direction.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=CLOSE_SECONDS)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    def _record(self, sent: bytes) -> bool:
        self.sent += sent
        return True

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:  # the broker is away: so is its proxy
            writer.close()
            return
        directions = {
            asyncio.create_task(_copy(reader, broker_writer, self._record)),
            asyncio.create_task(_copy(broker_reader, writer, lambda _: not self.drops_replies)),
        }
        self._directions |= directions
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        for direction in directions:
            direction.cancel()
        for end in (writer, broker_writer):
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()
        self._directions -= directions


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: Callable[[bytes], bool]) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65_536):
            if may_pass(chunk):
                writer.write(chunk)
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
