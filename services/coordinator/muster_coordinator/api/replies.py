"""What people say to a request that asks them."""

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse

from muster_coordinator.api.problems import require_known
from muster_protocol.messages import Decision
from muster_protocol.plan import Frozen, Plan
from muster_protocol.questions import decision_as_json
from muster_protocol.subjects import as_id

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator


class Said(Frozen):
    """A reply; without `question` to the one that is open."""

    question: str = ""
    choice: str = ""
    value: Any = None
    plan: Plan | None = None
    reason: str = ""


class Ordered(Frozen):
    """Which task is tried again, or who gets it; `role` or `worker` of the latter."""

    task: str
    role: str | None = None
    worker: str | None = None
    reason: str = ""


class Noted(Frozen):
    """What somebody has to say."""

    text: str


def routes(coordinator: "Coordinator") -> APIRouter:
    """What is said: 200 with the decision, 202 when nobody has taken it in yet, 409 when it comes too late."""
    router = APIRouter()

    @router.post("/v1/requests/{request_id}/reply")
    async def reply(request_id: str, said: Said) -> JSONResponse:
        await require_known(coordinator, request_id)
        decision = await coordinator.client.reply(
            as_id(request_id),
            said.choice,
            question=said.question,
            value=said.value,
            plan=said.plan,
            reason=said.reason,
        )
        return _taken_in(request_id, decision)

    @router.post("/v1/requests/{request_id}/retry")
    async def retry(request_id: str, said: Ordered) -> JSONResponse:
        await require_known(coordinator, request_id)
        return _taken_in(request_id, await coordinator.client.retry(request_id, said.task, said.reason))

    @router.post("/v1/requests/{request_id}/reassign")
    async def reassign(request_id: str, said: Ordered) -> JSONResponse:
        await require_known(coordinator, request_id)
        decision = await coordinator.client.reassign(
            request_id, said.task, said.role, worker=said.worker, reason=said.reason
        )
        return _taken_in(request_id, decision)

    @router.post("/v1/requests/{request_id}/note", status_code=202)
    async def note(request_id: str, noted: Noted) -> dict[str, str]:
        await require_known(coordinator, request_id)
        ended = coordinator.observer.overview.ended.get(as_id(request_id))
        if ended is not None:
            raise HTTPException(409, f"{request_id} is over already: {ended.status.value}")
        await coordinator.client.note(request_id, noted.text)
        return {"id": as_id(request_id)}

    return router


def _taken_in(request_id: str, decision: Decision | None) -> JSONResponse:
    taken_in = None if decision is None else decision_as_json(decision)
    return JSONResponse({"id": as_id(request_id), "decision": taken_in}, 202 if decision is None else 200)
