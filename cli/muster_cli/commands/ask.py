"""`muster ask`: send a text, show what happens to it, print its answer."""

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_agent.team.schema import Team
from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.json_file import read_json
from muster_cli.view.console import console, is_interactive, read_standard_input, say, say_json
from muster_cli.view.follow import follow
from muster_client import Client
from muster_protocol.errors import MusterError
from muster_protocol.messages import Request
from muster_protocol.messages.request import DEFAULT_DEADLINE_SECONDS

if TYPE_CHECKING:
    from muster_cli.people.approve import Approval


async def ask(given: Namespace, settings: Settings) -> int:
    text = read_standard_input() if given.text == "-" else given.text
    return await send_and_follow(given, settings, {"text": text})


def usual_deadline(settings: Settings, team: str) -> float:
    """What the team's file says, if it lies here; once a supervisor has the request, the log says it."""
    found = team_here(settings)
    return found.limits.deadline_seconds if found and found.team == team else DEFAULT_DEADLINE_SECONDS


def team_here(settings: Settings) -> Team | None:
    """The team whose file lies here, if it can be read: whoever runs it says what is wrong with its file."""
    try:
        return load_team(find_team_file(None, settings.team_file, Path.cwd()))
    except MusterError:
        return None


def with_options(given: Namespace, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request, with those that options set; an option wins over what a file says."""
    set_here = {"deadline_seconds": given.deadline, "in_flight": given.in_flight, "num_tasks": given.num_tasks}
    fields = {**fields, **{name: value for name, value in set_here.items() if value is not None}}
    limits = {"tokens": given.budget_tokens, "usd": given.budget_usd}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    budget = fields.get("budget", {})
    if limits and isinstance(budget, dict):  # anything else is refused with all the rest
        fields["budget"] = {**cast("dict[str, Any]", budget), **limits}
    return fields


async def send_and_follow(given: Namespace, settings: Settings, fields: dict[str, Any]) -> int:
    """Send a request of these fields and of the common arguments; returns the exit code of its answer."""
    if given.answer_schema is not None:
        fields = {**fields, "answer_schema": read_json(given.answer_schema, "--answer-schema")}
    fields = {**fields, "approve": True} if given.approve else fields
    fields = {**fields, "callback_url": given.callback_url} if given.callback_url is not None else fields
    fields = {**fields, "priority": given.priority} if given.priority else fields
    request = Request.read(json.dumps(with_options(given, fields)).encode())
    async with await connect(settings, given.team, is_traced=True) as client:
        client.usual_deadline_seconds = usual_deadline(settings, client.team)
        request_id = await client.send(request)
        if given.detach:
            if given.json:
                say_json({"request_id": request_id})
            else:
                say(request_id)
            return Exit.DONE
        approval = _approval(given, client, request_id, settings)
        return await follow(client, request_id, is_json=given.json, jaeger_url=settings.jaeger_url, approval=approval)


def _approval(given: Namespace, client: Client, request_id: str, settings: Settings) -> "Approval | None":
    """What asks whoever sits at the terminal about the plan; None: nobody does, or the plan waits for nobody."""
    if not given.approve or given.json or not is_interactive():
        return None
    from muster_cli.people.approve import Approval  # it draws plans, which no other way of asking does

    return Approval(client, request_id, console(is_error=True), team_here(settings), settings.editor)
