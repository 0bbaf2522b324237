"""What is read when somebody asks: one request's state, the newest errors."""

from typing import Any

from muster_bus.connection import Bus
from muster_bus.read import Raw, read_subject
from muster_bus.topology import last_sequence
from muster_coordinator.status import status_of
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskState
from muster_protocol.messages import ErrorReport
from muster_protocol.subjects import ERRORS

SHARE = 1000  # sequences of ERRORS looked through at a time


def shown(state: RequestState) -> dict[str, Any]:
    """A request as the API shows it."""
    return {
        "id": state.request_id,
        "status": status_of(state),
        "team": state.team,
        "owner": state.owner,
        "deadline": state.deadline,
        "started_at": state.started_at or None,
        "tasks": [_task(task) for task in state.tasks.values()],
        "plan": state.plan.model_dump(mode="json") if state.plan else None,
        "usage": state.usage.model_dump(mode="json"),
        "answer": state.answer.model_dump(mode="json", by_alias=True) if state.answer else None,
        "results_uncounted": state.uncounted,
    }


def _task(task: TaskState) -> dict[str, Any]:
    result = task.result
    return {
        "id": task.spec.id,
        "tag": task.spec.tag,
        "status": task.status.value,
        "description": task.description,
        "dependencies": list(task.spec.dependencies),
        "attempts": len(task.attempts),
        "worker": result.worker if result else None,
        "seconds": round(sum(attempt.result.seconds for attempt in task.attempts if attempt.result), 3),
        "reason": task.reason,
        "output": result.output if result else None,
    }


async def errors(bus: Bus, limit: int) -> list[dict[str, Any]]:
    """The newest errors, newest first."""
    found: list[Raw] = []
    newest = before = await last_sequence(bus, "ERRORS")
    while before > 0 and len(found) < limit and newest - before < 10 * SHARE:
        after = max(0, before - SHARE)
        page = await read_subject(bus.nc, "ERRORS", ERRORS, after, is_page=True)
        found = [raw for raw in page if raw.sequence <= before] + found
        before = after
    return [_error(raw) for raw in reversed(found[-limit:])]


def _error(raw: Raw) -> dict[str, Any]:
    """Also what somebody wrote here without a proper shape is shown: it must not be lost, and never loops."""
    told = {"sequence": raw.sequence, "time": raw.time, "sender": raw.headers.get(h.SENDER, "")}
    try:
        return {**told, **ErrorReport.read(raw.data).model_dump(mode="json")}
    except Invalid as reason:
        return {**told, "reason": f"unreadable: {reason}", "excerpt": raw.data[:200].decode(errors="replace")}
