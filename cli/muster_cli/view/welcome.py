"""What `muster up` prints when it is up."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from muster_agent.models.choose import choose_model
from muster_agent.team.schema import ModelRole, Team
from muster_cli.local.folder import Address, command
from muster_cli.local.suggestions import suggestion
from muster_cli.view.printing.terminal import styled

WELCOME = """\
[bold green]Muster is up[/] after {seconds} s: team [bold]{team}[/] with {roles}

  NATS   [bold]{nats}[/][dim]{nats_note}[/]
  HTTP   [bold]{http}[/][dim]{http_note}[/]
  files  {folder}
  model  {model}

Ask it something, from another terminal in this folder:

  {ask}

or from anywhere:

  nats -s {nats} pub requests.{team} {body}
  curl -s {http}/v1/requests -H 'content-type: application/json' -d {body_with_team}

Ctrl-C stops it; what was asked is kept in {folder}.
"""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The facts that `muster up` prints."""

    team: Team
    address: Address
    folder: Path
    models: tuple[str, ...]  # what a person should know about the models in use
    nats_note: str
    http_note: str


def welcome_text(welcome: Welcome, seconds: float) -> Text:
    team, suggested = welcome.team.team, suggestion(welcome.team)
    fields = suggested.fields
    return styled(
        WELCOME,
        ask=suggested.line(command()),
        seconds=f"{seconds:.1f}",
        team=team,
        roles=", ".join(role.name for role in welcome.team.roles),
        nats=welcome.address.nats_url,
        nats_note=welcome.nats_note,
        http=welcome.address.http_url,
        http_note=welcome.http_note,
        folder=str(welcome.folder),
        model="; ".join(welcome.models) or "as the team file says",
        body=_argument(fields),
        body_with_team=_argument(fields if team == "default" else {**fields, "team": team}),
    )


def _argument(fields: Mapping[str, Any]) -> str:
    """JSON as one argument of a command line."""
    return shlex.quote(json.dumps(fields, ensure_ascii=False))


def models_of(team: Team, env: Mapping[str, str]) -> tuple[str, ...]:
    """What a person should know about the models of the supervisor and the roles, each notice once."""
    users = (team.supervisor, *(role for role in team.roles if isinstance(role, ModelRole)))
    notices = (choose_model(user.model, env, team.prices, providers=team.providers).notice for user in users)
    return tuple(dict.fromkeys(notice for notice in notices if notice))


def port_note(url: str, usual: int, given: int | None) -> str:
    """Why it is not the usual port, unless the user chose another."""
    return "" if given is not None or url.endswith(f":{usual}") else f"   (port {usual} is not free)"
