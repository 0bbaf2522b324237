"""The team file: who is in the team, what they may use and what limits hold."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import yaml
from pydantic import BaseModel, ConfigDict, Discriminator, Field, ValidationError, field_validator, model_validator
from pydantic import Tag as Case
from pydantic_core import ErrorDetails

from muster_agent.models.port import Price, RoleCard
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.subjects import Tag, TeamName

BUILT_IN_TOOLS = ("calculate", "query_database", "search_corpus", "format_document")
_IMPORT_PATH = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"


class Strict(BaseModel):
    """A value in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(Strict):
    """What holds where neither the request nor the task says otherwise."""

    in_flight: int = Field(default=32, ge=1)
    deadline_seconds: float = Field(default=600, gt=0)
    task_timeout_seconds: float = Field(default=300, gt=0)
    max_attempts: int = Field(default=3, ge=1, le=10)
    task_tokens: int | None = Field(default=None, ge=1)


class SupervisorSpec(Strict):
    """The supervisor of the team."""

    persona: str = ""
    model: str = "auto"
    offline_seconds: float = Field(default=0.0, ge=0)


class RoleSpec(Strict):
    """What every role has. Its name is always one of its tags."""

    name: Tag
    tags: tuple[Tag, ...] = ()
    description: str = ""
    slots: int = Field(default=4, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _is_tagged_by_its_name(self) -> Self:
        if self.name not in self.tags:
            object.__setattr__(self, "tags", (self.name, *self.tags))  # frozen, and still being built
        return self


class ModelRole(RoleSpec):
    """A role that thinks with a model and its tools."""

    persona: str = ""
    model: str = "auto"
    tools: tuple[str, ...] = ()
    offline_seconds: float = Field(default=0.0, ge=0)

    @field_validator("tools", mode="after")
    @classmethod
    def _are_known(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        for tool in tools:
            if ":" not in tool and tool not in BUILT_IN_TOOLS:
                raise ValueError(f"unknown tool {tool!r}{nearest(tool, BUILT_IN_TOOLS)}, or package.module:function")
        return tools


class FunctionRole(RoleSpec):
    """A role that is a plain function `handler(task, ctx)`."""

    run: str = Field(pattern=_IMPORT_PATH)


def _case(raw: object) -> Literal["function", "model"]:
    is_function = "run" in cast("dict[str, Any]", raw) if isinstance(raw, dict) else isinstance(raw, FunctionRole)
    return "function" if is_function else "model"


Role = ModelRole | FunctionRole
_Role = Annotated[Annotated[ModelRole, Case("model")] | Annotated[FunctionRole, Case("function")], Discriminator(_case)]


class Team(Strict):
    """A supervisor's people. `folder` is where the file lies; the paths in it start there."""

    team: TeamName
    supervisor: SupervisorSpec = SupervisorSpec()
    roles: tuple[_Role, ...] = Field(min_length=1)
    corpus: Path | None = None
    tables: Path | None = None
    limits: Limits = Limits()
    prices: dict[str, Price] = {}
    folder: Path = Path()

    @property
    def tags(self) -> tuple[str, ...]:
        """Every tag that somebody serves, in the order of the file."""
        return tuple(dict.fromkeys(tag for role in self.roles for tag in role.tags))

    @property
    def cards(self) -> tuple[RoleCard, ...]:
        return tuple(RoleCard(role.name, role.tags, role.description) for role in self.roles)

    def role(self, name: str) -> Role:
        for role in self.roles:
            if role.name == name:
                return role
        raise Invalid(f"no role {name!r} in team {self.team!r}{nearest(name, [role.name for role in self.roles])}")

    def roles_matching(self, match_all: Iterable[str] = (), match_some: Iterable[str] = ()) -> tuple[Role, ...]:
        """The roles that have all of the first tags and, if there are any, at least one of the second."""
        needed, wanted = set(match_all), set(match_some)
        return tuple(
            role for role in self.roles if needed <= set(role.tags) and (not wanted or not wanted.isdisjoint(role.tags))
        )


def load_team(path: Path | str) -> Team:
    """Read a team file, or say which path in it is wrong."""
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
        # A misspelt key is often also a missing one; the misspelling is what helps.
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
    """Where it is, without the word by which pydantic tells the two kinds of role apart."""
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
