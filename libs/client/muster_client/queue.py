"""The queue of requests: what was asked and is not answered yet, whether somebody has taken it or not."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from muster_bus.broker.queues import subjects_of
from muster_bus.connection import Bus
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.subjects import ALL_REQUESTS, ALL_RESULTS, as_id, is_id, last_token, results

MAX_NAMED = 5  # requests that an error names


@dataclass(frozen=True, slots=True)
class Queued:
    """A request as it lies in the queue."""

    id: str
    team: str
    time: float  # broker time
    body: bytes | None  # None when it lies elsewhere


async def queued(bus: Bus) -> AsyncGenerator[Queued]:
    """Every request in the queue, oldest first, read page by page: all of them may not fit into memory."""
    after = 0
    while page := await bus.next_page(ALL_REQUESTS, after):
        for raw in page:
            request_id = h.request_id_of(raw.headers, raw.sequence, raw.data)
            body = None if h.BODY_REF in raw.headers else raw.data
            yield Queued(request_id, last_token(raw.subject), raw.time, body)
        after = page[-1].sequence


async def is_queued(bus: Bus, request_id: str) -> bool:
    async with aclosing(queued(bus)) as requests:
        async for request in requests:
            if request.id == request_id:
                return True
    return False


async def check_known(bus: Bus, request_id: str) -> None:
    """Refuse an id that has no log and is not in the queue: it was never asked, or its log has aged out."""
    # What is answered between the first two looks has a log at the third: nobody acks a request without one.
    if await _has_log(bus, request_id) or await is_queued(bus, request_id) or await _has_log(bus, request_id):
        return
    raise Invalid(f"no request {request_id!r} is known here: it was never asked, or its log is too old to be kept")


async def resolve_id(bus: Bus, given: str, *, is_old: bool = False) -> str:
    """The request that a person means: this id, or the only one that begins so. Raises Invalid, with those it could be.

    `is_old`: something is kept about requests whose log is not, so an id that is not known here is taken as it is.
    """
    request_id = as_id(given)
    try:
        await check_known(bus, request_id)
    except Invalid:
        found = await _beginning_with(bus, given) if is_id(given) else []
        if len(found) == 1:
            return found[0]
        if found:
            named = ", ".join(found[:MAX_NAMED]) + (" …" if len(found) > MAX_NAMED else "")
            raise Invalid(f"{len(found)} requests begin with {given!r}: {named}; write more of it") from None
        if not is_old:
            raise
    return request_id


async def _beginning_with(bus: Bus, prefix: str) -> list[str]:
    """The ids that begin so, of the requests that wait and of those that have a log."""
    logs = (last_token(subject) for subject in await subjects_of(bus, ALL_RESULTS))
    found = {request_id for request_id in logs if request_id.startswith(prefix)}
    async for request in queued(bus):
        if request.id.startswith(prefix):
            found.add(request.id)
    return sorted(found)


async def _has_log(bus: Bus, request_id: str) -> bool:
    return bool(await bus.next_page(results(request_id), 0))
