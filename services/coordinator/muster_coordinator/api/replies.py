"""What people say to a request that asks them."""

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse

from muster_coordinator.api.problems import require_known
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


class Noted(Frozen):
    """What somebody has to say."""

    text: str


def routes(coordinator: "Coordinator") -> APIRouter:
    """Replies: 200 with the decision, 202 when nobody has taken it in yet, 409 with the decision that stands."""
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
        taken_in = None if decision is None else decision_as_json(decision)
        return JSONResponse({"id": as_id(request_id), "decision": taken_in}, 202 if decision is None else 200)

    @router.post("/v1/requests/{request_id}/note", status_code=202)
    async def note(request_id: str, noted: Noted) -> dict[str, str]:
        await require_known(coordinator, request_id)
        ended = coordinator.observer.overview.ended.get(as_id(request_id))
        if ended is not None:
            raise HTTPException(409, f"{request_id} is over already: {ended.status.value}")
        await coordinator.client.note(request_id, noted.text)
        return {"id": as_id(request_id)}

    return router
