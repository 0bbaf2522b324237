"""What happens to one request, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from muster_client import Update
from muster_coordinator.api.problems import require_known
from muster_protocol.fold import Entry

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

KEEP_ALIVE_SECONDS = 15.0  # proxies close a stream that is silent for a minute


def routes(coordinator: "Coordinator") -> APIRouter:
    """The log of a request and its events, as they come; the stream ends after the answer."""
    router = APIRouter()

    @router.get("/v1/requests/{request_id}/events")
    async def events(request_id: str) -> StreamingResponse:
        await require_known(coordinator, request_id)
        stream = server_sent(coordinator.client.updates(request_id), coordinator.stopping)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return router


async def server_sent(updates: AsyncGenerator[Update], stopping: asyncio.Event) -> AsyncGenerator[str]:
    """Updates as server-sent events, with a comment now and then to keep the connection."""
    async with aclosing(updates):
        stop = asyncio.ensure_future(stopping.wait())
        coming = asyncio.ensure_future(anext(updates, None))
        try:
            while not stopping.is_set():
                await asyncio.wait([coming, stop], timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    yield ": still here\n\n"
                    continue
                update = coming.result()
                if update is None:
                    yield "event: end\ndata: {}\n\n"
                    return
                yield _formatted(update)
                coming = asyncio.ensure_future(anext(updates, None))
        finally:
            stop.cancel()
            coming.cancel()
            await asyncio.wait([coming, stop])


def _formatted(update: Update) -> str:
    content = {
        "time": update.time,
        "sender": update.sender,
        "body": update.body.model_dump(mode="json", by_alias=True),
    }
    number = f"id: {update.sequence}\n" if isinstance(update, Entry) else ""
    return f"{number}event: {update.body.kind}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"
