"""Writes a team as a team file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from muster.here import require_beside
from muster_agent.team.checking.mistakes import roles_in, tools_in
from muster_agent.team.schema import Role, Team
from muster_protocol.errors import Invalid

HEAD = "# Written by Team.to_file(); `muster check` says what is wrong after a change.\n"


def write_team(team: Team, path: Path, *, replace: bool) -> None:
    """Write it, whole or not at all."""
    raw = raw_of(team, path.parent)
    for function in _functions(raw):
        require_beside(function, path.parent)
    if path.exists() and not replace:
        raise Invalid("is there already; name another file, or say replace=True", str(path))
    text = HEAD + yaml.safe_dump(raw, sort_keys=False, allow_unicode=True, width=100)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def raw_of(team: Team, folder: Path) -> dict[str, Any]:
    """What a team file in this folder says of the team: only what was said, so that defaults stay defaults."""
    raw = team.model_dump(mode="json", exclude_unset=True, exclude={"folder", "roles"})
    raw = {key: value for key, value in raw.items() if value is not None}
    _make_relative(raw, folder.resolve())
    raw["roles"] = [_role(role) for role in team.roles]
    return raw


def _make_relative(raw: dict[str, Any], folder: Path) -> None:
    """Write the paths of a team as seen from the folder of its file."""
    places = [(raw, "corpus"), (raw, "tables"), (raw.get("files", {}), "root")]
    places += [(raw.get("databases", {}), name) for name in raw.get("databases", {})]
    providers = raw.get("providers", {}).values()
    places += [(provider, key) for provider in providers for key in ("api_key_file", "replies_file")]
    for holder, key in places:
        if holder.get(key) is not None:
            holder[key] = os.path.relpath(holder[key], folder)


def _role(role: Role) -> dict[str, Any]:
    said = role.model_dump(mode="json", exclude_unset=True)
    if others := said.pop("fallbacks", None):
        said["model"] = [said["model"], *others]
    if "tools" in said:
        said["tools"] = [tool["use"] if tool.keys() == {"use"} else tool for tool in said["tools"]]
    tags = [tag for tag in role.tags if tag != role.name]
    return {key: value for key, value in {**said, "tags": tags}.items() if value is not None and value != []}


def _functions(raw: Mapping[str, Any]) -> list[str]:
    """The functions that the roles name."""
    run = [str(role["run"]) for _, role in roles_in(raw) if "run" in role]
    tools = [tool for _, role in roles_in(raw) for _, tool in tools_in(role.get("tools"))]
    return [*run, *(tool for tool in tools if ":" in tool)]
