"""`muster status` and `muster cancel`: what is going on, how one request stands and why."""

import json
import sys
from argparse import Namespace
from typing import Any

from rich.table import Table

from muster_bus.queues import teams_provisioned
from muster_cli.connect import connect
from muster_cli.exits import Exit
from muster_cli.live import live_tags, live_workers
from muster_cli.local.folder import http_url, nats_url
from muster_cli.view.console import console
from muster_cli.view.explain import explain
from muster_cli.view.render import show_answer, tasks_of
from muster_cli.view.requests import ended_requests, open_requests
from muster_client import Client
from muster_client.queue import check_known
from muster_protocol.errors import Misconfigured
from muster_protocol.fold import RequestState
from muster_protocol.subjects import as_id

MAX_SHOWN = 20  # the newest; each costs reading its log


async def status(given: Namespace) -> int:
    async with await connect() as client:
        await _check_provisioned(client)
        if given.id is not None:
            return await _one(client, given.id, given.json)
        return await _all(client, given.json)


async def cancel(given: Namespace) -> int:
    async with await connect() as client:
        await _check_provisioned(client)
        state = await _known(client, given.id)
        is_over = state.answer is not None
        if not is_over:
            await client.cancel(given.id, given.reason)
        notice = f"{given.id} is over already" if is_over else f"{given.id} ends now; its answer keeps what is done"
        print(json.dumps({"request_id": state.request_id, "cancelled": not is_over}) if given.json else notice)
        return Exit.DONE


async def _one(client: Client, name: str, is_json: bool) -> int:
    state = await _known(client, name)
    why = explain(state, client.bus.clock.now(), await live_tags(client.bus))
    if is_json:
        _write(_document(state, why))
        return Exit.DONE
    out = console()
    if state.plan_entry is not None:
        out.print(state.plan_entry.plan.goal or state.plan_entry.text, style="bold", markup=False, highlight=False)
        out.print(tasks_of(state))
    if state.answer is not None and state.answer.text:
        show_answer(out, state.answer)
    out.print(why, markup=False, highlight=False, soft_wrap=True)
    return Exit.DONE


async def _all(client: Client, is_json: bool) -> int:
    now = client.bus.clock.now()
    workers = await live_workers(client.bus)
    tags = {tag for worker in workers for tag in worker.tags}
    count, newest = await open_requests(client.bus, MAX_SHOWN)
    rows = [(request, explain(await client.state(request.id), now, tags)) for request in newest]
    ended = await ended_requests(http_url(), MAX_SHOWN)
    if is_json:
        requests = [{"request_id": r.id, "team": r.team, "text": r.text, "cause": why} for r, why in rows]
        _write(
            {
                "open": count,
                "requests": requests,
                "ended": [request.model_dump(mode="json") for request in ended],
                "workers": [worker.model_dump(mode="json") for worker in workers],
            }
        )
        return Exit.DONE
    out = console()
    table = _table("worker", "busy", "tags")
    for worker in workers:
        table.add_row(worker.name, f"{worker.busy} of {worker.slots} slots", ", ".join(worker.tags))
    out.print(table if workers else "no live worker")
    table = _table("open request", "age", "asked", "how it stands")
    for request, why in rows:
        table.add_row(request.id, f"{max(0.0, now - request.since):.0f} s", _short(request.text), why)
    out.print(table if rows else "no open request", highlight=False)
    if count > len(rows):
        out.print(f"… and {count - len(rows)} older ones", style="dim")
    if ended:
        table = _table("ended request", "status", "tasks done", "seconds")
        for request in ended:
            table.add_row(request.id, request.status, str(request.done), f"{request.seconds or 0:.1f}")
        out.print(table)
    return Exit.DONE


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _table(*names: str) -> Table:
    return Table(*names, box=None, pad_edge=False, header_style="dim")


def _document(state: RequestState, why: str) -> dict[str, Any]:
    return {
        "request_id": state.request_id,
        "status": why.partition(" ")[0].rstrip(":"),
        "cause": why,
        "team": state.team,
        "owner": state.owner,
        "deadline": state.deadline,
        "tasks": [outcome.model_dump(mode="json") for outcome in state.outcomes()],
        "usage": state.usage.model_dump(mode="json"),
        "answer": None if state.answer is None else state.answer.model_dump(mode="json", by_alias=True),
    }


async def _check_provisioned(client: Client) -> None:
    if not await teams_provisioned(client.bus):
        raise Misconfigured(f"nothing of Muster is at {nats_url()} yet; `muster up` or `muster provision` makes it")


async def _known(client: Client, name: str) -> RequestState:
    """The state of a request; without a log it either waits for a supervisor or does not exist."""
    await check_known(client.bus, as_id(name))
    return await client.state(name)


def _write(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
