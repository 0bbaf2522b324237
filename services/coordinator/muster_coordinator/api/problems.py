"""Every error of the API as a problem document (RFC 9457)."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI, HTTPException
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from muster_client import Answered, NotAsked, Settled
from muster_client.queue import check_known
from muster_protocol.errors import Invalid, MusterError, Retryable
from muster_protocol.messages.wrong import reason_of
from muster_protocol.questions import decision_as_json
from muster_protocol.subjects import as_id

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from muster_coordinator.coordinator import Coordinator

RETRY_SECONDS = 2
WITHOUT_BROKER = {"/healthz", "/readyz", "/"}  # paths that are answered while the broker is away


def add_handlers(app: FastAPI, coordinator: "Coordinator") -> None:
    """Answer errors, and everything that comes while the broker is away, with problem documents."""

    @app.middleware("http")
    async def require_broker(request: HttpRequest, go_on: Callable[[HttpRequest], Awaitable[Response]]) -> Response:
        if request.url.path in WITHOUT_BROKER or coordinator.bus.connected.is_set():
            return await go_on(request)
        return _problem(503, "the broker is away; nothing that was accepted is lost")

    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(StarletteHTTPException, _on_http_error)
    app.add_exception_handler(MusterError, _on_muster_error)


async def require_known(coordinator: "Coordinator", request_id: str) -> None:
    """404 unless the request has a log or waits for its first taker."""
    if coordinator.observer.overview.get(as_id(request_id)) is not None:
        return
    try:
        await check_known(coordinator.bus, as_id(request_id))
    except Invalid as unknown:
        raise HTTPException(404, unknown.reason) from None


async def _on_invalid_request(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return _problem(415, "the body is to be JSON, under the header `content-type: application/json`")
    if first["type"] == "json_invalid":
        return _problem(422, f"the body is not JSON: {first['ctx']['error']} at character {first['loc'][-1]}")
    where = [str(part) for part in first["loc"]]
    return _problem(
        422, reason_of(cast("ErrorDetails", first)), field=".".join(where[1:] if where[0] == "body" else where)
    )


async def _on_http_error(_: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    return _problem(error.status_code, str(error.detail))


async def _on_muster_error(_: HttpRequest, error: Exception) -> Response:
    if isinstance(error, Settled):
        return _problem(409, str(error), decision=decision_as_json(error.decision))
    if isinstance(error, Answered):
        return _problem(409, str(error))
    if isinstance(error, NotAsked):
        return _problem(404, error.reason, field=error.where)
    if isinstance(error, Invalid):
        return _problem(422, error.reason, field=error.where)
    return _problem(503 if isinstance(error, Retryable) else 500, str(error))


def _problem(status: int, detail: str, field: str = "", decision: dict[str, Any] | None = None) -> JSONResponse:
    content: dict[str, Any] = {"type": "about:blank", "status": status, "detail": detail}
    if decision is not None:
        content["decision"] = decision
    if field:
        content["field"] = field
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return JSONResponse(content, status, headers, media_type="application/problem+json")
