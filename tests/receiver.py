"""A receiver of callbacks: keeps what it gets, and replies what a test tells it to."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from muster_testing.waiting import LIMIT_SECONDS, until_asked

HANG = 0  # in place of a status: no reply at all


@dataclass(frozen=True)
class Got:
    """One request, as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Replies one status after the other, and the last one for ever."""

    port: int = 0
    statuses: list[int] = field(default_factory=lambda: [204])
    fields: str = ""  # of every reply
    got: list[Got] = field(default_factory=list[Got])
    is_tls: bool = False
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = field(
        default_factory=dict[asyncio.Task[None], asyncio.StreamWriter]
    )

    def url(self, path: str = "/in?token=hidden", host: str = "127.0.0.1") -> str:
        return f"http{'s' if self.is_tls else ''}://{host}:{self.port}{path}"

    async def until(self, count: int, within: float = LIMIT_SECONDS) -> list[Got]:
        """Wait until so many requests came."""

        async def are_there() -> bool:
            return len(self.got) >= count

        await until_asked(are_there, f"{count} callbacks came", within)
        return self.got

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self.connections[task] = writer
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *fields = head.strip().split("\r\n")
            headers = dict(name_and_value.split(": ", 1) for name_and_value in fields)
            body = await reader.readexactly(int(headers["Content-Length"]))
            self.got.append(Got(line, headers, body))
            status = self.statuses[0] if len(self.statuses) == 1 else self.statuses.pop(0)
            if status == HANG:
                await reader.read()  # until the other side gives up
            else:
                writer.write(f"HTTP/1.1 {status} Said\r\n{self.fields}Content-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def end(self) -> None:
        """Close every connection and wait for its end."""
        for writer in self.connections.values():
            writer.close()
        if self.connections:
            await asyncio.wait(self.connections, timeout=LIMIT_SECONDS)


@contextlib.asynccontextmanager
async def receiving(
    *statuses: int, fields: str = "", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Receiver]:
    receiver = Receiver(statuses=list(statuses) or [204], fields=fields, is_tls=tls is not None)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await receiver.end()
