"""`muster status`: what is going on, or how one request stands and why."""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from muster_bus.broker.storing import why_not_stored
from muster_bus.buckets.breakers import shown_breakers
from muster_bus.buckets.conflicts import count_conflicts
from muster_bus.buckets.limits import shown_limits
from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.local.folder import http_url
from muster_cli.view.board import name_of
from muster_cli.view.console import console, say_json
from muster_cli.view.plain import ago, duration, plain
from muster_cli.view.printing.listing import Listing
from muster_cli.view.render import remarks_on, sentence, show_answer, tasks_of
from muster_cli.view.requests import Ended, Open, check_provisioned, ended_requests, known_view, open_requests
from muster_cli.view.workers import live_workers
from muster_client import Client
from muster_client.timeline.failures import failures_in
from muster_client.view import views
from muster_protocol.counted import counted
from muster_protocol.errors import Misconfigured
from muster_protocol.messages import PlanRecorded
from muster_protocol.status import Standing
from muster_protocol.workers.card import WorkerCard

MAX_SHOWN = 20  # the newest; each costs reading its log
MAX_FAILURES = 50  # the last ones
MAX_FAILURE = 400  # characters
MAX_ASKED = 200


@dataclass(frozen=True, slots=True)
class Overview:
    """What `muster status` without an id shows."""

    now: float
    workers: list[WorkerCard]
    open_count: int
    open: list[tuple[Open, Standing]]  # the newest
    ended: list[Ended]
    ended_missing: str  # why they are not listed
    conflicts: int
    breakers: list[dict[str, Any]]  # of roles that do not answer
    rate_limits: list[dict[str, Any]]  # of providers that refused a call as one too many
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
                say_json(_overview_document(overview), is_indented=True)
            else:
                _show_overview(console(), overview)
        if (trouble := await storing) and not given.json:
            console().print(trouble, style="red", soft_wrap=True)
    return Exit.DONE


async def _show_one(client: Client, name: str, *, is_json: bool) -> None:
    view = await known_view(client, name)
    failures = failures_in((await client.timeline(view.state.request_id)).steps)
    if is_json:
        listed = [failure.as_json() for failure in failures]
        say_json(
            {
                "request_id": view.state.request_id,
                **view.as_json(),
                "failures": listed,
                "cause": str(view.standing),
            },
            is_indented=True,
        )
        return
    superseded = [(task_id, found) for task_id, task in view.state.tasks.items() for found in task.superseded]
    out, state = console(), view.state
    if state.plan_entry is not None:
        out.print(_with_priority(state.plan_entry.plan.goal or state.plan_entry.text, state.plan_entry), style="bold")
        out.print(tasks_of(view))
        for warning in state.plan_entry.warnings:
            out.print(plain(f"the plan: {warning}", MAX_FAILURE), style="yellow", soft_wrap=True)
    for failure in failures[-MAX_FAILURES:]:
        out.print(plain(str(failure), MAX_FAILURE), style="red", soft_wrap=True)
    if len(failures) > MAX_FAILURES:
        text = f"… and {len(failures) - MAX_FAILURES} before them: `muster logs {state.request_id}`"
        out.print(text, style="dim")
    if state.answer is not None and state.answer.text:
        show_answer(out, state.answer)
    for remark in remarks_on(state.answer) if state.answer is not None else ():
        out.print(remark, soft_wrap=True)
    for task_id, found in superseded:
        text = f"≈ {task_id}  attempt {found.attempt} by {name_of(found.worker)} is superseded ({found.status})"
        out.print(f"{text}: {counted(found.tokens, 'token')}, {found.seconds:.1f} s")
    if view.conflicts:
        out.print(_conflicts_line(view.conflicts, state.request_id))
    out.print(sentence(view.standing), soft_wrap=True)


async def _overview(client: Client, coordinator_url: str | None, storing: Awaitable[str]) -> Overview:
    now = client.bus.clock.now()
    workers = await live_workers(client.bus)
    count, newest = await open_requests(client.bus, MAX_SHOWN)
    found = await views(client.bus, [request.id for request in newest])
    rows = [(request, view.standing) for request, view in zip(newest, found, strict=True)]
    ended, missing = await ended_requests(coordinator_url, MAX_SHOWN)
    conflicts = await _conflict_count(client)
    breakers = await shown_breakers(client.bus, now)
    held = await shown_limits(client.bus, now)
    return Overview(now, workers, count, rows, ended, missing, conflicts, breakers, held, await storing)


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
                "id": request.id,
                "request_id": request.id,
                "team": request.team,
                "text": request.text,
                "priority": request.priority,
                "status": standing.status.value,
                "reason": standing.reason,
                "cause": str(standing),
            }
            for request, standing in overview.open
        ],
        "ended": [request.model_dump(mode="json") for request in overview.ended],
        "ended_missing": overview.ended_missing,
        "workers": [worker.model_dump(mode="json", exclude={"roles"}) for worker in overview.workers],
        "conflicts": overview.conflicts,
        "breakers": overview.breakers,
        "rate_limits": overview.rate_limits,
        "trouble": overview.trouble,
    }


def _show_overview(out: Console, overview: Overview) -> None:
    workers = Listing("worker", "busy", "tags", wide=60)
    for worker in overview.workers:
        workers.add(worker.name, f"{worker.busy} of {counted(worker.slots, 'slot')}", ", ".join(worker.tags))
    out.print(workers if workers else "no live worker")
    requests = Listing("open request", "age", "team", "asked", "how it stands", sentences=2)
    for request, standing in overview.open:
        age = duration(max(0.0, overview.now - request.since))
        requests.add(request.id, age, request.team, _with_priority(request.text, request), sentence(standing))
    out.print(requests if requests else "no open request")
    if overview.open_count > len(overview.open):
        out.print(f"… and {overview.open_count - len(overview.open):,} older ones", style="dim")
    if overview.ended:
        out.print(_ended(overview))
    if overview.ended_missing:
        out.print(overview.ended_missing, style="dim", soft_wrap=True)
    if overview.conflicts:
        out.print(_conflicts_line(overview.conflicts))
    for one in overview.breakers:
        when = f"in {duration(one['next_try_in_seconds'])}" if one["next_try_in_seconds"] else "with the next task"
        who = f"provider '{one['provider']}'" if one["provider"] else f"role '{one['role']}'"
        text = f"{who} does not answer ({one['state'].replace('_', '-')}), it is tried again {when}"
        out.print(text, style="yellow", soft_wrap=True)
    for one in overview.rate_limits:
        wait = duration(one["held_for_seconds"])
        text = f"provider '{one['provider']}' says that it is asked too often, nobody asks it for {wait}"
        out.print(text, style="yellow", soft_wrap=True)


def _with_priority(asked: str, of: Open | PlanRecorded) -> str:
    """What was asked, and before it a priority that is not the usual one."""
    return ("" if of.priority == "normal" else f"{plain(of.priority)} priority: ") + plain(asked, MAX_ASKED)


def _ended(overview: Overview) -> Listing:
    names = ("ended request", "asked", "asked by", "team", "tasks", "took", "what was asked", "how it ended")
    listing = Listing(*names, sentences=2, wide=160)
    for ended in overview.ended:
        listing.add(
            ended.id,
            ago(overview.now - ended.asked_at) if ended.asked_at else "",
            plain(ended.asked_by, 60),
            ended.team,
            f"{ended.done} done",
            duration(ended.seconds or 0.0),
            plain(ended.asked, MAX_ASKED),
            sentence(Standing(ended.status, ended.reason)),
        )
    return listing


def _conflicts_line(count: int, request_id: str = "") -> str:
    return f"{counted(count, 'conflict')}: `muster conflicts{' ' if request_id else ''}{request_id}` says which"
