"""What is read when somebody asks: one request's state, the tasks of large requests, the newest errors."""

from collections.abc import Sequence
from typing import Any

from muster_bus.connection import Bus
from muster_bus.read import Raw
from muster_client import Client
from muster_coordinator import streams
from muster_coordinator.overview import Overview, Summary
from muster_coordinator.status import status_of
from muster_coordinator.task_counts import counts_of
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskState
from muster_protocol.messages import ErrorReport
from muster_protocol.subjects import ERRORS

ERRORS_AT_ONCE = 1000  # sequences of `errors` looked through at a time
MAX_RECOUNTS = 3  # a list comes soon; the next one counts the next


def shown(state: RequestState) -> dict[str, Any]:
    """A request as the API shows it."""
    return {
        "id": state.request_id,
        "status": status_of(state),
        **counts_of(state)._asdict(),
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


async def recount(client: Client, overview: Overview, listed: Sequence[Summary]) -> None:
    """Count the tasks of requests that are too large to be followed, from their logs: a few of those listed."""
    for summary in overview.to_recount(listed)[:MAX_RECOUNTS]:
        overview.recount(await client.state(summary.id))


async def errors(bus: Bus, limit: int) -> list[dict[str, Any]]:
    """The newest errors, newest first."""
    found: list[Raw] = []
    newest = before = await streams.newest_sequence(bus, ERRORS)
    while before > 0 and len(found) < limit and newest - before < 10 * ERRORS_AT_ONCE:
        after = max(0, before - ERRORS_AT_ONCE)
        page = await streams.replica_page(bus, ERRORS, after)
        found = [raw for raw in page if raw.sequence <= before] + found
        before = after
    return [_error(raw) for raw in reversed(found[-limit:])]


def _error(raw: Raw) -> dict[str, Any]:
    """Also what is no error report is shown, so that nothing on `errors` is lost; it is never reported itself."""
    shown = {"sequence": raw.sequence, "time": raw.time, "sender": raw.headers.get(h.SENDER, "")}
    try:
        return {**shown, **ErrorReport.read(raw.data).model_dump(mode="json")}
    except Invalid as reason:
        return {**shown, "reason": f"unreadable: {reason}", "excerpt": raw.data[:200].decode(errors="replace")}
