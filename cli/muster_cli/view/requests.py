"""Which requests there are: the open ones from the queue itself, the ended ones from the coordinator if it is up."""

import asyncio
import json
import urllib.request
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from muster_bus.broker.access import shown
from muster_bus.broker.queues import teams_provisioned
from muster_bus.connection import Bus
from muster_bus.process.settings import Settings
from muster_cli.local.folder import nats_url
from muster_client import Client
from muster_client.queue import Queued, queued, resolve_id
from muster_client.view import RequestView
from muster_protocol.errors import Misconfigured
from muster_protocol.plan import Frozen
from muster_protocol.status_words import ENDED, RequestStatus

HTTP_SECONDS = 2.0
MAX_PRIORITY = 10  # characters: anybody may have written anything


@dataclass(frozen=True, slots=True)
class Open:
    """A request that is not answered yet."""

    id: str
    team: str
    since: float  # broker time
    text: str
    priority: str = "normal"


class Ended(Frozen):
    """A request that was answered lately, as the coordinator shows it."""

    id: str
    status: RequestStatus
    reason: str = ""
    team: str = ""
    asked: str = ""
    asked_by: str = ""
    asked_at: float | None = None
    done: int = 0
    seconds: float | None = None


class _Listed(Frozen):
    requests: tuple[Ended, ...] = ()


async def check_provisioned(client: Client, settings: Settings) -> None:
    """Refuse a broker on which nothing of Muster was ever made."""
    if not await teams_provisioned(client.bus):
        url = shown(nats_url(settings))
        raise Misconfigured(f"nothing of Muster is at {url} yet; `muster up` or `muster provision` makes it")


async def known_view(client: Client, name: str) -> RequestView:
    """How a request stands; without a log it either waits for a supervisor or does not exist."""
    return await client.view(await resolve_id(client.bus, name))


async def ended_requests(http_url: str | None, limit: int) -> tuple[list[Ended], str]:
    """The last ones that ended; without a coordinator to ask none, and why."""
    if http_url is None:
        return [], "requests that ended are not listed: only a coordinator knows them, and none is known here"
    try:
        body = await asyncio.to_thread(_get, f"{http_url}/v1/requests?limit=1000")
        listed = _Listed.model_validate_json(body).requests
    except (OSError, ValidationError):
        return [], f"requests that ended are not listed: no coordinator answers at {shown(http_url)}"
    return [request for request in listed if request.status in ENDED][:limit], ""


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=HTTP_SECONDS) as reply:
        return reply.read()


async def open_requests(bus: Bus, limit: int) -> tuple[int, list[Open]]:
    """How many lie in the queue, and the newest of them, newest first."""
    count = 0
    newest: deque[Queued] = deque(maxlen=limit)
    async for request in queued(bus):
        count += 1
        newest.append(request)
    return count, [_open(found) for found in reversed(newest)]


def _open(found: Queued) -> Open:
    if found.body is None:
        return Open(found.id, found.team, found.time, "a large request")
    fields = _fields(found.body)
    priority = str(fields.get("priority", "normal"))[:MAX_PRIORITY]
    return Open(found.id, found.team, found.time, _about(fields), priority)


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
