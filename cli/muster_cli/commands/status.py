"""`muster status`: what is going on, or how one request stands and why."""

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from muster_bus.broker.storing import why_not_stored
from muster_bus.buckets.conflicts import count_conflicts
from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.local.folder import http_url
from muster_cli.view.console import console
from muster_cli.view.plain import plain
from muster_cli.view.render import show_answer, tasks_of
from muster_cli.view.requests import Ended, Open, check_provisioned, ended_requests, known_view, open_requests
from muster_cli.view.workers import live_workers
from muster_client import Client
from muster_client.timeline.failures import failures_in
from muster_client.view import views
from muster_protocol.errors import Misconfigured
from muster_protocol.status import Standing
from muster_protocol.worker_card import WorkerCard

MAX_SHOWN = 20  # the newest; each costs reading its log
MAX_FAILURES = 50  # the last ones
MAX_FAILURE = 400  # characters


@dataclass(frozen=True, slots=True)
class Overview:
    """What `muster status` without an id shows."""

    now: float
    workers: list[WorkerCard]
    open_count: int
    open: list[tuple[Open, Standing]]  # the newest
    ended: list[Ended]
    conflicts: int
    trouble: str  # why the broker stores nothing, if so


async def status(given: Namespace, settings: Settings) -> int:
    async with await connect(settings) as client:
        await check_provisioned(client, settings)
        storing = asyncio.ensure_future(why_not_stored(client.bus))  # it takes seconds where it is not
        if given.id is not None:
            await _show_one(client, given.id, is_json=given.json)
        else:
            overview = await _overview(client, http_url(settings), storing)
            if given.json:
                _write(_overview_document(overview))
            else:
                _show_overview(console(), overview)
        if (trouble := await storing) and not given.json:
            console().print(trouble, style="red", markup=False, highlight=False, soft_wrap=True)
    return Exit.DONE


async def _show_one(client: Client, name: str, *, is_json: bool) -> None:
    view = await known_view(client, name)
    failures = failures_in((await client.timeline(name)).steps)
    if is_json:
        listed = [failure.as_json() for failure in failures]
        _write(
            {
                "request_id": view.state.request_id,
                **view.as_json(),
                "failures": listed,
                "cause": str(view.standing),
            }
        )
        return
    superseded = [(task_id, found) for task_id, task in view.state.tasks.items() for found in task.superseded]
    out, state = console(), view.state
    if state.plan_entry is not None:
        out.print(state.plan_entry.plan.goal or state.plan_entry.text, style="bold", markup=False, highlight=False)
        out.print(tasks_of(view))
    for failure in failures[-MAX_FAILURES:]:
        out.print(plain(str(failure), MAX_FAILURE), style="red", markup=False, highlight=False, soft_wrap=True)
    if len(failures) > MAX_FAILURES:
        text = f"… and {len(failures) - MAX_FAILURES} before them: `muster logs {state.request_id}`"
        out.print(text, style="dim", markup=False, highlight=False)
    if state.answer is not None and state.answer.text:
        show_answer(out, state.answer)
    for task_id, found in superseded:
        text = f"≈ {task_id}  attempt {found.attempt} by worker-{found.worker} is superseded ({found.status})"
        out.print(f"{text}: {found.tokens:,} tokens, {found.seconds:.1f} s", markup=False, highlight=False)
    if view.conflicts:
        out.print(_conflicts_line(view.conflicts, state.request_id), markup=False, highlight=False)
    out.print(str(view.standing), markup=False, highlight=False, soft_wrap=True)


async def _overview(client: Client, coordinator_url: str | None, storing: Awaitable[str]) -> Overview:
    now = client.bus.clock.now()
    workers = await live_workers(client.bus)
    count, newest = await open_requests(client.bus, MAX_SHOWN)
    found = await views(client.bus, [request.id for request in newest])
    rows = [(request, view.standing) for request, view in zip(newest, found, strict=True)]
    ended = await ended_requests(coordinator_url, MAX_SHOWN)
    return Overview(now, workers, count, rows, ended, await _conflict_count(client), await storing)


async def _conflict_count(client: Client) -> int:
    """Of all requests; an installation that was provisioned by an older version has none."""
    try:
        return await count_conflicts(client.bus)
    except Misconfigured:
        return 0


def _overview_document(overview: Overview) -> dict[str, Any]:
    return {
        "open": overview.open_count,
        "requests": [
            {
                "request_id": request.id,
                "team": request.team,
                "text": request.text,
                "status": standing.status.value,
                "reason": standing.reason,
                "cause": str(standing),
            }
            for request, standing in overview.open
        ],
        "ended": [request.model_dump(mode="json") for request in overview.ended],
        "workers": [worker.model_dump(mode="json") for worker in overview.workers],
        "conflicts": overview.conflicts,
        "trouble": overview.trouble,
    }


def _show_overview(out: Console, overview: Overview) -> None:
    table = _table("worker", "busy", "tags")
    for worker in overview.workers:
        table.add_row(worker.name, f"{worker.busy} of {worker.slots} slots", ", ".join(worker.tags))
    out.print(table if overview.workers else "no live worker")
    table = _table("open request", "age", "asked", "how it stands")
    for request, standing in overview.open:
        age = f"{max(0.0, overview.now - request.since):.0f} s"
        table.add_row(request.id, age, _short(request.text), str(standing))
    out.print(table if overview.open else "no open request", highlight=False)
    if overview.open_count > len(overview.open):
        out.print(f"… and {overview.open_count - len(overview.open)} older ones", style="dim")
    if overview.ended:
        table = _table("ended request", "tasks done", "seconds", "how it ended")
        for ended in overview.ended:
            standing = Standing(ended.status, ended.reason)
            table.add_row(ended.id, str(ended.done), f"{ended.seconds or 0:.1f}", str(standing))
        out.print(table, highlight=False)
    if overview.conflicts:
        out.print(_conflicts_line(overview.conflicts), highlight=False)


def _conflicts_line(count: int, request_id: str = "") -> str:
    noun = "conflict" if count == 1 else "conflicts"
    return f"{count} {noun}: `muster conflicts{' ' if request_id else ''}{request_id}` says which"


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _table(*names: str) -> Table:
    return Table(*names, box=None, pad_edge=False, header_style="dim")


def _write(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
