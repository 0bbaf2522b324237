"""One request: submit it, read it, cancel it, wait for its answer."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, HTTPException, Query
from fastapi.responses import JSONResponse
from pydantic import model_validator

from muster_coordinator.api.problems import require_known
from muster_coordinator.queries import shown
from muster_protocol.errors import Invalid
from muster_protocol.fields import check_spelling
from muster_protocol.messages import Request
from muster_protocol.subjects import as_id

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

MAX_WAIT_SECONDS = 60.0


class Submission(Request):
    """A request and the team that it is for."""

    team: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_spelling(cls, fields: object) -> object:
        check_spelling(fields, cls)
        return fields


def routes(coordinator: "Coordinator") -> APIRouter:
    """What a client does with one request."""
    router = APIRouter()

    @router.post("/v1/requests", status_code=202)
    async def submit(
        submission: Submission, idempotency_key: Annotated[str | None, Header(max_length=200)] = None
    ) -> JSONResponse:
        request_id = await _submit(coordinator, submission, idempotency_key)
        where = f"/v1/requests/{request_id}"
        return JSONResponse({"id": request_id, "href": where}, 202, headers={"Location": where})

    @router.post("/v1/requests/{request_id}/cancel", status_code=202)
    async def cancel(request_id: str, reason: str = "") -> dict[str, str]:
        await require_known(coordinator, request_id)
        ended = coordinator.observer.overview.ended.get(as_id(request_id))
        if ended is not None:
            raise HTTPException(409, f"{request_id} is over already: {ended.status.value}")
        await coordinator.client.cancel(request_id, reason)
        return await _standing(coordinator, request_id)

    @router.get("/v1/requests/{request_id}")
    async def read(request_id: str) -> JSONResponse:
        await require_known(coordinator, request_id)
        return JSONResponse(await shown(coordinator.client, request_id))

    @router.get("/v1/requests/{request_id}/answer")
    async def answer(request_id: str, wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0) -> JSONResponse:
        await require_known(coordinator, request_id)
        try:
            found = await coordinator.client.answer(request_id, timeout=max(wait, 0.5))
        except TimeoutError:
            return JSONResponse(await _standing(coordinator, request_id), 202, headers={"Retry-After": "1"})
        return JSONResponse(found.model_dump(mode="json", by_alias=True))

    return router


async def _standing(coordinator: "Coordinator", request_id: str) -> dict[str, str]:
    """The short answer to how a request stands."""
    standing = (await coordinator.client.view(request_id)).standing
    return {"id": as_id(request_id), "status": standing.status.value, "reason": standing.reason}


async def _submit(coordinator: "Coordinator", submission: Submission, idempotency_key: str | None) -> str:
    if idempotency_key and submission.id and idempotency_key != submission.id:
        raise Invalid("differs from the header Idempotency-Key", "id")
    fields = submission.model_dump(exclude={"team"}, exclude_unset=True)
    request = Request.model_validate({**fields, "id": idempotency_key or submission.id})
    request_id = await coordinator.client.send(request, team=submission.team)
    coordinator.observer.overview.expect(request_id, submission.team or coordinator.client.team)
    return request_id
