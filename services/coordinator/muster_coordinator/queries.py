"""What is read when somebody asks: how requests stand, the newest errors."""

from typing import Any

from muster_bus.broker.queues import last_sequence
from muster_bus.connection import Bus
from muster_bus.read_stream import Raw
from muster_client import Client
from muster_client.view import views
from muster_coordinator.overview import Overview, Summary
from muster_coordinator.task_counts import counts_of
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.messages import ErrorReport
from muster_protocol.status_words import ENDED, RequestStatus
from muster_protocol.subjects import ERRORS

ERRORS_AT_ONCE = 1000  # sequences of `errors` looked through at a time


async def shown(client: Client, request_id: str) -> dict[str, Any]:
    """A request as the API shows it."""
    found = await client.view(request_id)
    return {**found.as_json(), **counts_of(found.state)._asdict()}


async def listed(
    client: Client, overview: Overview, limit: int, status: RequestStatus | None = None
) -> list[dict[str, Any]]:
    """The newest requests, also of one status alone, each with the reason, as its log has them now."""
    if status is None:
        return await _rows(client, overview, overview.newest()[:limit])
    # headers tell the ended ones apart; how an open one stands, its log may know better
    may_be = [summary for summary in overview.newest() if (summary.status in ENDED) == (status in ENDED)]
    if status in ENDED:
        may_be = [summary for summary in may_be if summary.status is status][:limit]
    found: list[dict[str, Any]] = []
    for begin in range(0, len(may_be), limit):
        rows = await _rows(client, overview, may_be[begin : begin + limit])
        found += [row for row in rows if row["status"] == status.value]
        if len(found) >= limit:
            break
    return found[:limit]


async def _rows(client: Client, overview: Overview, newest: list[Summary]) -> list[dict[str, Any]]:
    to_view = [summary for summary in newest if not (summary.status in ENDED and summary.reason)]
    rows = {summary.id: summary.as_json() for summary in newest}
    for summary, view in zip(to_view, await views(client.bus, [summary.id for summary in to_view]), strict=True):
        if summary.status in ENDED and view.state.answer is None:
            continue  # its log is too old to be kept; its headers said how it ended
        overview.recount(view.state)
        standing = view.standing
        if summary.status in ENDED:
            summary.reason = standing.reason  # it will not change any more
        rows[summary.id] = {**summary.as_json(), "status": standing.status.value, "reason": standing.reason}
    return list(rows.values())


async def errors(bus: Bus, limit: int) -> list[dict[str, Any]]:
    """The newest errors, newest first."""
    found: list[Raw] = []
    newest = before = await last_sequence(bus, ERRORS)
    while before > 0 and len(found) < limit and newest - before < 10 * ERRORS_AT_ONCE:
        after = max(0, before - ERRORS_AT_ONCE)
        page = await bus.read(ERRORS, after, is_page=True)
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
