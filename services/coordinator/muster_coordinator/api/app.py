"""The HTTP API, version 1. The only module that knows FastAPI."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Query
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from pydantic import model_validator
from starlette.exceptions import HTTPException

from muster_bus.workers import live_workers
from muster_client import Update
from muster_client.queue import check_known
from muster_coordinator.queries import errors, shown
from muster_protocol.errors import Invalid, MusterError, Retryable
from muster_protocol.fields import check_spelling
from muster_protocol.fold import Entry
from muster_protocol.messages import Request
from muster_protocol.subjects import as_id

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

RETRY_SECONDS = 2
KEEP_ALIVE_SECONDS = 15.0  # proxies close a stream that is silent for a minute
MAX_WAIT_SECONDS = 60.0
PROBES = {"/healthz", "/readyz", "/"}
INDEX = {
    "service": "muster coordinator",
    "openapi": "/openapi.json",
    "docs": "/docs",
    "paths": [
        "POST /v1/requests",
        "GET /v1/requests",
        "GET /v1/requests/{id}",
        "GET /v1/requests/{id}/events",
        "GET /v1/requests/{id}/answer?wait=SECONDS",
        "POST /v1/requests/{id}/cancel",
        "GET /v1/workers",
        "GET /v1/conflicts",
        "GET /v1/errors",
        "GET /v1/overview",
        "GET /healthz",
        "GET /readyz",
    ],
}


class Submission(Request):
    """A request and the team that it is for."""

    team: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_spelt_right(cls, fields: object) -> object:
        check_spelling(fields, cls)
        return fields


def make_app(coordinator: "Coordinator") -> FastAPI:
    app = FastAPI(title="Muster", version="0.1.0", redoc_url=None)
    _add_problems(app, coordinator)
    _add_probes(app, coordinator)
    _add_asking(app, coordinator)
    _add_following(app, coordinator)
    _add_watching(app, coordinator)
    return app


def _add_probes(app: FastAPI, coordinator: "Coordinator") -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> dict[str, Any]:
        return INDEX

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        is_alive = coordinator.health.is_alive
        return PlainTextResponse("ok\n" if is_alive else "the loop stands still\n", 200 if is_alive else 503)

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        is_ready = coordinator.health.is_ready
        return PlainTextResponse("ok\n" if is_ready else "not ready\n", 200 if is_ready else 503)


def _add_asking(app: FastAPI, coordinator: "Coordinator") -> None:
    @app.post("/v1/requests", status_code=202)
    async def submit(
        submission: Submission, idempotency_key: Annotated[str | None, Header(max_length=200)] = None
    ) -> JSONResponse:
        if idempotency_key and submission.id and idempotency_key != submission.id:
            raise Invalid("differs from the header Idempotency-Key", "id")
        fields = submission.model_dump(exclude={"team"}, exclude_unset=True)
        request = Request.model_validate({**fields, "id": idempotency_key or submission.id})
        request_id = await coordinator.client.send(request, team=submission.team)
        coordinator.observer.overview.expect(request_id, submission.team or coordinator.client.team)
        where = f"/v1/requests/{request_id}"
        return JSONResponse({"id": request_id, "href": where}, 202, headers={"Location": where})

    @app.post("/v1/requests/{request_id}/cancel", status_code=202)
    async def cancel(request_id: str, reason: str = "") -> dict[str, str]:
        await _known(coordinator, request_id)
        ended = coordinator.observer.overview.ended.get(as_id(request_id))
        if ended is not None:
            raise HTTPException(409, f"{request_id} is over already: {ended.status}")
        await coordinator.client.cancel(request_id, reason)
        return {"id": as_id(request_id), "status": "cancelling"}


def _add_following(app: FastAPI, coordinator: "Coordinator") -> None:
    @app.get("/v1/requests/{request_id}")
    async def read(request_id: str) -> JSONResponse:
        state = await coordinator.client.state(request_id)
        if state.last_sequence == 0:
            await _known(coordinator, request_id)
        return JSONResponse(shown(state))

    @app.get("/v1/requests/{request_id}/answer")
    async def answer(request_id: str, wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0) -> JSONResponse:
        await _known(coordinator, request_id)
        try:
            found = await coordinator.client.answer(request_id, timeout=max(wait, 0.5))
        except TimeoutError:
            return JSONResponse({"id": as_id(request_id), "status": "open"}, 202, headers={"Retry-After": "1"})
        return JSONResponse(found.model_dump(mode="json", by_alias=True))

    @app.get("/v1/requests/{request_id}/events")
    async def events(request_id: str) -> StreamingResponse:
        await _known(coordinator, request_id)
        stream = server_sent(coordinator.client.updates(request_id), coordinator.stopping)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _add_watching(app: FastAPI, coordinator: "Coordinator") -> None:
    observer = coordinator.observer

    @app.get("/v1/requests")
    async def requests(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> dict[str, Any]:
        await coordinator.refresh_waiting()
        newest = [*reversed(observer.overview.open.values()), *reversed(observer.overview.ended.values())]
        return {"requests": [summary.as_json() for summary in newest[:limit]], "total": len(newest)}

    @app.get("/v1/workers")
    async def listed_workers() -> dict[str, Any]:
        return {"workers": [card.model_dump(mode="json") for card in await live_workers(coordinator.bus)]}

    @app.get("/v1/conflicts")
    async def conflicts() -> dict[str, Any]:
        return {"conflicts": [conflict.model_dump(mode="json") for conflict in observer.conflicts.values()]}

    @app.get("/v1/errors")
    async def listed_errors(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> dict[str, Any]:
        return {"errors": await errors(coordinator.bus, limit)}

    @app.get("/v1/overview")
    async def overview() -> dict[str, Any]:
        return {
            "requests": observer.overview.counts(),
            "workers": len(await live_workers(coordinator.bus)),
            "conflicts": len(observer.conflicts),
            "errors": len(await errors(coordinator.bus, 1000)),
        }


async def _known(coordinator: "Coordinator", request_id: str) -> None:
    """404 unless the request has a log or waits for its first taker."""
    if coordinator.observer.overview.get(as_id(request_id)) is not None:
        return
    try:
        await check_known(coordinator.bus, as_id(request_id))
    except Invalid as unknown:
        raise HTTPException(404, unknown.reason) from None


async def server_sent(updates: AsyncGenerator[Update], stopping: asyncio.Event) -> AsyncGenerator[str]:
    """Happenings as server-sent events, with a comment now and then to keep the connection."""
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
                yield _sent(update)
                coming = asyncio.ensure_future(anext(updates, None))
        finally:
            stop.cancel()
            coming.cancel()
            await asyncio.wait([coming, stop])


def _sent(update: Update) -> str:
    said = {
        "time": update.time,
        "sender": update.sender,
        "body": update.body.model_dump(mode="json", by_alias=True),
    }
    number = f"id: {update.sequence}\n" if isinstance(update, Entry) else ""
    return f"{number}event: {update.body.kind}\ndata: {json.dumps(said, ensure_ascii=False)}\n\n"


def _add_problems(app: FastAPI, coordinator: "Coordinator") -> None:
    @app.middleware("http")
    async def broker_is_there(request: HttpRequest, go_on: Callable[[HttpRequest], Awaitable[Response]]) -> Response:
        if request.url.path in PROBES or coordinator.bus.connected.is_set():
            return await go_on(request)
        return _problem(503, "the broker is away; nothing that was accepted is lost")

    async def on_wrong_body(request: HttpRequest, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
            return _problem(415, "the body is to be JSON, under the header `content-type: application/json`")
        if first["type"] == "json_invalid":
            return _problem(422, f"the body is not JSON: {first['ctx']['error']} at character {first['loc'][-1]}")
        where = [str(part) for part in first["loc"]]
        reason = str(first["msg"]).removeprefix("Value error, ")
        return _problem(422, reason, field=".".join(where[1:] if where[0] == "body" else where))

    async def on_http(_: HttpRequest, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _problem(error.status_code, str(error.detail))

    async def on_muster(_: HttpRequest, error: Exception) -> Response:
        if isinstance(error, Invalid):
            return _problem(422, error.reason, field=error.where)
        return _problem(503 if isinstance(error, Retryable) else 500, str(error))

    app.add_exception_handler(RequestValidationError, on_wrong_body)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(MusterError, on_muster)


def _problem(status: int, detail: str, field: str = "") -> JSONResponse:
    """RFC 9457."""
    content: dict[str, Any] = {"type": "about:blank", "status": status, "detail": detail}
    if field:
        content["field"] = field
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return JSONResponse(content, status, headers, media_type="application/problem+json")
