"""A web server of whatever a test says: it replies with the bytes that belong to a path, and notes what was asked."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Said = bytes | AsyncIterator[bytes]  # all of a reply, or its parts as they come


@dataclass
class Asked:
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class WebServer:
    """Where it is, and what it was asked."""

    reply: Callable[[Asked], Said]
    port: int = 0
    asked: list[Asked] = field(default_factory=list[Asked])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            line, *fields = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in fields)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = line.split(" ")
            self.asked.append(Asked(method, path, headers, body))
            said = self.reply(self.asked[-1])
            if isinstance(said, bytes):
                writer.write(said)
                await writer.drain()
            else:
                async for part in said:
                    writer.write(part)
                    await writer.drain()
        writer.close()


def http(body: bytes, kind: str = "text/html", status: str = "200 OK", fields: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return head.encode() + body


@asynccontextmanager
async def serving(reply: Callable[[Asked], Said]) -> AsyncGenerator[WebServer]:
    web = WebServer(reply)
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            connections.add(task)
        try:
            await web.serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections, timeout=5)
