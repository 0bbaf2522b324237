"""Writes a team as a team file."""

import os
from pathlib import Path
from typing import Any

import yaml

from muster.here import require_beside
from muster_agent.team.schema import FunctionRole, Role, Team
from muster_protocol.errors import Invalid

HEAD = "# Written by Team.to_file(); `muster check` says what is wrong after a change.\n"


def write_team(team: Team, path: Path, *, replace: bool) -> None:
    """Write it, whole or not at all."""
    for function in _functions(team):
        require_beside(function, path.parent)
    if path.exists() and not replace:
        raise Invalid("is there already; name another file, or say replace=True", str(path))
    text = HEAD + yaml.safe_dump(raw_of(team, path.parent), sort_keys=False, allow_unicode=True, width=100)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def raw_of(team: Team, folder: Path) -> dict[str, Any]:
    """What a team file in this folder says of the team: only what was said, so that defaults stay defaults."""
    raw = team.model_dump(mode="json", exclude_unset=True, exclude={"folder", "roles"})
    raw = {key: value for key, value in raw.items() if value is not None}
    raw |= {key: os.path.relpath(raw[key], folder.resolve()) for key in ("corpus", "tables") if key in raw}
    raw["roles"] = [_role(role) for role in team.roles]
    return raw


def _role(role: Role) -> dict[str, Any]:
    said = role.model_dump(mode="json", exclude_unset=True)
    tags = [tag for tag in role.tags if tag != role.name]
    return {key: value for key, value in {**said, "tags": tags}.items() if value is not None and value != []}


def _functions(team: Team) -> list[str]:
    run = [role.run for role in team.roles if isinstance(role, FunctionRole)]
    tools = [tool for role in team.roles if not isinstance(role, FunctionRole) for tool in role.tools]
    return [*run, *(tool for tool in tools if ":" in tool)]
