"""Reads a team file; what is wrong in it is an error that names its path."""

from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from muster_agent.models.port import Price
from muster_agent.team.schema import FunctionRole, Limits, ModelRole, SupervisorSpec, Team
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest


def load_team(path: Path | str) -> Team:
    """Read a team file; what is wrong in it is an error with its path."""
    file = Path(path)
    try:
        raw: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Invalid(f"cannot read the team file: {error.strerror}", str(file)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid(f"not a YAML file: {' '.join(str(error).split())}", str(file)) from None
    if not isinstance(raw, dict):
        raise Invalid("a team file is a mapping with the keys team and roles", str(file))
    return team_of(cast("dict[str, Any]", raw), file.resolve().parent, str(file))


def team_of(raw: dict[str, Any], folder: Path, where: str = "team file") -> Team:
    """The team that a mapping describes; relative paths start at the folder."""
    if "folder" in raw:
        raise Invalid(f"unknown key 'folder'{nearest('folder', _keys(Team))}", where)
    try:
        team = Team.model_validate({**raw, "folder": folder})
    except ValidationError as error:
        found = error.errors(include_url=False)
        # A misspelt key is often also a missing one, and the misspelt name is the more useful error.
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
        raise Invalid(_reason(first), f"{where}: {_path(first)}") from None
    _check_names(team, where)
    return team.model_copy(
        update={name: _folder(team, name, where) for name in ("corpus", "tables") if getattr(team, name) is not None}
    )


def _keys(of: type[BaseModel]) -> list[str]:
    return [key for key in of.model_fields if key != "folder"]


def _reason(error: ErrorDetails) -> str:
    if error["type"] != "extra_forbidden":
        return error["msg"]
    match error["loc"]:
        case ("supervisor", key):
            known = _keys(SupervisorSpec)
        case ("limits", key):
            known = _keys(Limits)
        case ("prices", _, key):
            known = _keys(Price)
        case ("roles", int(), "model", key):
            known = [*_keys(ModelRole), "run"]
        case ("roles", int(), "function", key):
            known = _keys(FunctionRole)
        case (*_, key):
            known = _keys(Team)
        case _:
            return error["msg"]
    return f"unknown key {str(key)!r}{nearest(str(key), known)}"


def _path(error: ErrorDetails) -> str:
    """The path of an error, without the name that pydantic inserts for the kind of role."""
    loc = error["loc"]
    if len(loc) > 2 and loc[0] == "roles":
        loc = (*loc[:2], *loc[3:])
    return ".".join(str(part) for part in loc)


def _check_names(team: Team, where: str) -> None:
    seen: set[str] = set()
    for number, role in enumerate(team.roles):
        if role.name in seen:
            raise Invalid(f"a second role named {role.name!r}", f"{where}: roles.{number}.name")
        seen.add(role.name)
        for tool, key in (("search_corpus", "corpus"), ("query_database", "tables")):
            if isinstance(role, ModelRole) and tool in role.tools and getattr(team, key) is None:
                raise Invalid(f"{tool} needs the key {key!r} with a folder", f"{where}: roles.{number}.tools")


def _folder(team: Team, name: str, where: str) -> Path:
    path = (team.folder / cast("Path", getattr(team, name))).resolve()
    if not path.is_dir():
        raise Invalid(f"{path} is not a folder", f"{where}: {name}")
    return path
