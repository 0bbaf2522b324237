"""Which requests there are: the open ones from the queue itself, the finished ones from the coordinator if it is up."""

import asyncio
import json
import urllib.request
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from muster_bus.connection import Bus
from muster_bus.read import Raw, read_subject
from muster_protocol import headers as h
from muster_protocol.plan import Frozen
from muster_protocol.subjects import last_token, request_id

HTTP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Open:
    """A request that is not answered yet."""

    id: str
    team: str
    since: float  # broker time
    text: str


class Ended(Frozen):
    """A request that was answered lately, as the coordinator shows it."""

    id: str
    status: str
    done: int = 0
    seconds: float | None = None


class _Listed(Frozen):
    requests: tuple[Ended, ...] = ()


async def ended_requests(http_url: str | None, limit: int) -> list[Ended]:
    """The last ones that ended; none when there is no coordinator to ask."""
    if http_url is None:
        return []
    try:
        body = await asyncio.to_thread(_get, f"{http_url}/v1/requests?limit=1000")
        listed = _Listed.model_validate_json(body).requests
    except (OSError, ValidationError):
        return []
    return [request for request in listed if request.status not in ("waiting", "open")][:limit]


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=HTTP_SECONDS) as reply:
        return reply.read()


async def open_requests(bus: Bus) -> list[Open]:
    """What lies in the queue, oldest first; at most a thousand."""
    raws = await read_subject(bus.nc, "REQUESTS", "requests.*", is_page=True)
    return [_open(raw) for raw in raws]


def _open(raw: Raw) -> Open:
    fields = _fields(raw.data)
    body_id = fields.get("id")
    name = request_id(
        raw.headers.get(h.MESSAGE_ID), body_id if isinstance(body_id, str) else None, raw.sequence, raw.data
    )
    return Open(name, last_token(raw.subject), raw.time, _about(fields))


def _about(fields: dict[str, Any]) -> str:
    for kind in ("text", "plan", "map"):
        value = fields.get(kind)
        if isinstance(value, str):
            return " ".join(value.split())
        if isinstance(value, dict):
            goal = cast("dict[str, Any]", value).get("goal")
            return str(goal) if goal else f"a {kind}"
    return "not readable"


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}
