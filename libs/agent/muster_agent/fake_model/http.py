"""The little of HTTP that the server speaks: one request, one reply, and the connection is closed."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import cast

from muster_agent.fake_model.canned import CannedReply, Json, encoded

Answer = Callable[[str, Mapping[str, str], Json], Awaitable[CannedReply]]
MAX_HEAD = 64 * 1024


@asynccontextmanager
async def serving(
    answer: Answer, released: asyncio.Event, host: str = "127.0.0.1", port: int = 0
) -> AsyncGenerator[str]:
    """Serve until the end; gives the address. What is held goes out when `released` is set."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                await _reply(reader, writer, answer, released)
            finally:
                writer.close()
                await writer.wait_closed()

    listening = await asyncio.start_server(serve, host, port, limit=MAX_HEAD)
    async with listening:
        try:
            yield f"http://{host}:{listening.sockets[0].getsockname()[1]}"
        finally:
            released.set()


async def _reply(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, released: asyncio.Event
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    try:
        body: object = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))))
    except ValueError:
        body = None
    path = head[0].split()[1].partition("?")[0]
    if isinstance(body, dict):
        fields = cast("Json", body)
        canned = await answer(path, headers, fields)
        is_stream = fields.get("stream") is True
    else:
        canned, is_stream = CannedReply({"error": {"message": "the body is not a JSON object"}}, 400), False
    if canned.is_held:
        await released.wait()
    writer.write(encoded(canned, is_stream=is_stream))
    await writer.drain()
