"""`muster plan`: how a team would do something, what is odd about that and what it will take; nothing is run."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from muster_agent.models.choose import choose_model
from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_bus.buckets.measures import read_measures
from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.commands.ask import with_options
from muster_cli.connect import connect
from muster_cli.json_file import read_json, read_plan
from muster_cli.local.folder import read_address
from muster_cli.plan.view import PlanView, plan_document, print_plan
from muster_cli.view.console import console, read_standard_input, say, say_json
from muster_protocol.errors import MusterError
from muster_protocol.fields import check_spelling
from muster_protocol.messages import Request
from muster_protocol.workers.measured import Measured
from muster_supervisor.planning.estimate import estimate_for, over_limits
from muster_supervisor.planning.lint import Finding, errors, lint
from muster_supervisor.planning.planner import Unplannable, draft_plan
from muster_supervisor.planning.routing import route


async def plan(given: Namespace, settings: Settings) -> int:
    team = load_team(find_team_file(given.team_file, settings.team_file, Path.cwd()))
    request = Request.read(json.dumps(with_options(given, _fields(given))).encode())
    lead = team.supervisor
    model = choose_model(lead.model, settings.model_env, team.prices, lead.offline_seconds, team.providers)
    if request.text and model.notice:
        say(model.notice, is_error=True)
    try:
        draft, usage = await draft_plan(request, team, model)
    except Unplannable as reason:
        view = PlanView(None, [Finding("error", reason.where, reason.reason)], None, usage=reason.usage)
    else:
        findings = lint(draft, team, request.budget, request.num_tasks, is_map=request.map is not None)
        expected = None
        if not errors(findings):
            in_flight = request.in_flight or team.limits.in_flight
            expected = estimate_for(route(draft, team), team, await _measures(settings, team.team), in_flight)
            deadline = request.deadline_seconds or team.limits.deadline_seconds
            findings += [Finding("warning", "plan", text) for text in over_limits(expected, request.budget, deadline)]
        view = PlanView(draft, findings, expected, usage)
    if given.json:
        say_json({"team": team.team, "planner": model.name if request.text else "given", **plan_document(view)})
    else:
        print_plan(console(), view)
    return Exit.FAILED if errors(view.findings) else Exit.DONE


def _fields(given: Namespace) -> dict[str, Any]:
    if given.plan is not None:
        fields = {"plan": read_plan(given.plan)}
    elif given.map is not None:
        fields = {"map": read_json(given.map, "--map")}
    else:
        fields = {"text": read_standard_input() if given.text == "-" else given.text}
    check_spelling(fields)
    return fields


async def _measures(settings: Settings, team: str) -> dict[str, Measured]:
    """What the broker knows of the team's roles; without one, nothing is known."""
    if settings.nats_url is None and read_address() is None:
        return {}
    try:
        async with await connect(settings, team) as client:
            return await read_measures(client.bus, team)
    except MusterError as reason:
        say(f"the estimate knows nothing of what was measured: {reason}", is_error=True)
        return {}
