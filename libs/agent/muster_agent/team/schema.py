"""The values of a team file: the team, its roles, what they may use and what limits hold."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    field_validator,
    model_validator,
)
from pydantic import Tag as Case
from pydantic_core import PydanticCustomError

from muster_agent.models.choose import check_model_name
from muster_agent.models.port import CONTEXT_TOKENS, MAX_TOKENS, MAX_TURNS, Effort, Price
from muster_agent.team.chaining import turns_for_steps
from muster_agent.team.files import FilesSpec
from muster_agent.team.networks import NetworkText
from muster_agent.team.providers import Providers, ProviderSpec
from muster_agent.team.rate_limits import RateLimits
from muster_agent.team.strict import Strict
from muster_agent.team.tool_spec import MEMORY_MB, TIME_SECONDS, MemoryMb, ToolUse, VariableName, refuse_limits
from muster_agent.team.web import WebSpec
from muster_protocol.calling.addresses import host_pattern
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.messages.people import PERSON_SECONDS
from muster_protocol.messages.request import DEFAULT_DEADLINE_SECONDS
from muster_protocol.messages.result import ProviderName
from muster_protocol.plan import Retry
from muster_protocol.subjects import Tag, TeamName
from muster_protocol.workers.role_card import RoleCard, line

BUILT_IN_TOOLS = (
    "calculate",
    "query_database",
    "search_corpus",
    "list_files",
    "read_file",
    "write_file",
    "scrape_page",
    "web_search",
    "format_document",
)
CANNOT_DO = "cannot_do"  # the tool of every role that uses a model
ADD_TASK = "add_task"  # the tool of roles that may add tasks: no list of tools names it
_IMPORT_PATH = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


def is_import_path(text: str) -> bool:
    """Whether a text has the form `package.module:function`."""
    return re.fullmatch(_IMPORT_PATH, text) is not None


def _check_tool_name(tool: str) -> str:
    if tool == ADD_TASK:
        raise ValueError(f"{ADD_TASK} comes with spawns: true; write that under the role instead")
    if tool == CANNOT_DO:
        raise ValueError(f"every role that uses a model has {CANNOT_DO}; leave it out")
    if tool not in BUILT_IN_TOOLS and not is_import_path(tool):
        raise ValueError(f"unknown tool {tool!r}{nearest(tool, BUILT_IN_TOOLS)}, or module:function")
    return tool


def _tool_use(tool: object) -> object:
    """A tool that is named alone, as the mapping that it stands for."""
    if isinstance(tool, ToolUse):
        return tool
    if isinstance(tool, dict):
        said = cast("dict[str, object]", tool)
        return {**said, "use": _check_tool_name(name)} if isinstance(name := said.get("use"), str) else said
    if isinstance(tool, str):
        return {"use": _check_tool_name(tool)}
    raise PydanticCustomError("tool_type", "Input should be a tool")


HostPattern = Annotated[str, AfterValidator(host_pattern)]
ModelName = Annotated[str, AfterValidator(check_model_name)]
ToolEntry = Annotated[ToolUse, BeforeValidator(_tool_use)]


class RetrySpec(Retry, Strict):
    """How failed attempts are tried again, where a team or a role says so."""


class Limits(Strict):
    """The limits for whatever neither the request nor the task sets."""

    in_flight: int = Field(default=32, ge=1)
    deadline_seconds: float = Field(default=DEFAULT_DEADLINE_SECONDS, gt=0)
    task_timeout_seconds: float = Field(default=300, gt=0)
    max_attempts: int = Field(default=3, ge=1, le=10)
    tasks: int = Field(default=2_000, ge=1)  # of a request whose plan grows
    depth: int = Field(default=3, ge=0)  # of tasks that add tasks that add tasks
    rounds: int = Field(default=1, ge=0, le=10)  # of looks at the results, where the plan was made for the request
    replacements: int = Field(default=1, ge=0, le=10)  # of failures for which other ways are looked for, there
    person_seconds: float = Field(default=PERSON_SECONDS, gt=0)  # for people, beside the deadline
    pause_for_people: bool = True
    task_tokens: int | None = Field(default=None, ge=1)
    request_lease_seconds: float = Field(default=10, ge=1, le=300)  # applied by provisioning, as is the next
    task_lease_seconds: float = Field(default=30, ge=1, le=3600)


class CallbackSpec(Strict):
    """Who may be called back with an answer."""

    hosts: tuple[HostPattern, ...] = Field(min_length=1)
    http: bool = False  # without TLS, for development
    private: tuple[NetworkText, ...] = ()  # networks that may be called besides the public ones
    give_up_after_seconds: float = Field(default=86_400, gt=0, le=259_200)  # the log with the answer lives four days


class SupervisorSpec(Strict):
    """The supervisor of the team."""

    persona: str = ""
    guidelines: str = ""
    model: ModelName = "auto"
    approve: bool = False  # people approve every plan, unless a request says otherwise
    offline_seconds: float = Field(default=0.0, ge=0)


class Priorities(Strict):
    """The lanes of a team: of so many tasks that start while all lanes wait, how many each gives. High comes first.

    With 8, 4 and 1 a low task starts after twelve others at the latest, and after eight if only high ones wait.
    """

    high: int = Field(default=8, ge=1, le=100)
    normal: int = Field(default=4, ge=1, le=100)
    low: int = Field(default=1, ge=1, le=100)
    preempt: bool = False  # a high task for which no slot is free takes that of a low one

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.high >= self.normal >= self.low:
            raise ValueError("high must be at least normal, and normal at least low: they say who comes first")
        return self


class RoleSpec(Strict):
    """What both kinds of role have. The name of a role is always one of its tags."""

    name: Tag
    tags: tuple[Tag, ...] = ()
    description: str = ""
    slots: int = Field(default=4, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0)
    retry: RetrySpec = RetrySpec()
    spawns: bool = False  # it may add tasks while it does its own

    @model_validator(mode="after")
    def _add_name_to_tags(self) -> Self:
        if self.name not in self.tags:
            object.__setattr__(self, "tags", (self.name, *self.tags))  # frozen, and still being built
        return self


class ModelRole(RoleSpec):
    """A role that uses a model with tools."""

    persona: str = ""
    model: ModelName = "auto"  # a list in the file: the others follow as `fallbacks`
    fallbacks: tuple[ModelName, ...] = ()
    other_model: ModelName | None = None  # gets one try at what the first refuses
    tools: tuple[ToolEntry, ...] = ()
    offline_seconds: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=MAX_TOKENS, ge=1)
    max_turns: int = Field(default=MAX_TURNS, ge=1, le=1000)
    context_tokens: int = Field(default=CONTEXT_TOKENS, ge=4_000)  # that the model can read; earlier outputs make room

    effort: Effort | None = None
    thinking: bool | None = None
    stream: bool = False  # what it writes is published while it is written

    _read_chaining = model_validator(mode="before")(turns_for_steps)

    @model_validator(mode="before")
    @classmethod
    def _split_models(cls, raw: object) -> object:
        """Of `model: [a, b]` the first is the model, and the others are its fallbacks."""
        if not isinstance(raw, dict) or not isinstance(models := cast("dict[str, Any]", raw).get("model"), list):
            return cast("object", raw)
        first, *others = cast("list[object]", models) or [""]
        return {**cast("dict[str, Any]", raw), "model": first, "fallbacks": others}


class FunctionRole(RoleSpec):
    """A role that is a plain function `handler(task, ctx)`."""

    run: str = Field(pattern=_IMPORT_PATH)
    inputs: dict[str, str] = Field(default_factory=dict[str, str])
    isolated: bool = False  # in a process of its own
    memory_mb: MemoryMb = MEMORY_MB
    env: tuple[VariableName, ...] = ()  # of the worker's variables those that its process gets

    @field_validator("retry")
    @classmethod
    def _keep_its_inputs(cls, retry: RetrySpec) -> RetrySpec:
        if retry.refine:
            raise ValueError("refine: true is for roles that use a model; a function is called again as it was")
        return retry

    @model_validator(mode="after")
    def _limit_its_process(self) -> Self:
        refuse_limits(self.model_fields_set, is_isolated=self.isolated, keys=("memory_mb", "env"))
        if self.isolated and self.timeout_seconds is None:
            object.__setattr__(self, "timeout_seconds", TIME_SECONDS)  # frozen, and still being built
        return self


def _case(raw: object) -> Literal["function", "model"]:
    is_function = "run" in cast("dict[str, Any]", raw) if isinstance(raw, dict) else isinstance(raw, FunctionRole)
    return "function" if is_function else "model"


Role = ModelRole | FunctionRole
_Role = Annotated[Annotated[ModelRole, Case("model")] | Annotated[FunctionRole, Case("function")], Discriminator(_case)]


class Team(Strict):
    """A supervisor and its roles. `folder` is where the file is; relative paths start there."""

    team: TeamName
    supervisor: SupervisorSpec = SupervisorSpec()
    roles: tuple[_Role, ...] = Field(min_length=1)
    workers: tuple[Tag, ...] = ()  # names by which tasks may ask for one worker: provisioned as tags
    examples: tuple[str, ...] = ()
    corpus: Path | None = None
    tables: Path | None = None
    databases: dict[Tag, Path] = Field(default_factory=dict[str, Path])
    files: FilesSpec | None = None  # absent: no role has files
    web: WebSpec | None = None  # absent: no role has the web
    limits: Limits = Limits()
    retry: RetrySpec = RetrySpec()
    callbacks: CallbackSpec | None = None  # absent: nobody is called back
    priorities: Priorities | None = None  # None: all requests are of normal priority
    prices: dict[str, Price] = Field(default_factory=dict[str, Price])
    providers: Providers = Field(default_factory=dict[str, ProviderSpec])
    rate_limits: dict[ProviderName, RateLimits] = Field(default_factory=dict[ProviderName, RateLimits])
    folder: Path = Path()

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags that tasks are given out on: those of the roles, and the names of the workers that have one."""
        return tuple(dict.fromkeys((*self.role_tags, *self.workers)))

    @property
    def role_tags(self) -> tuple[str, ...]:
        """The tags of all roles, in the order of the file."""
        return tuple(dict.fromkeys(tag for role in self.roles for tag in role.tags))

    @property
    def cards(self) -> tuple[RoleCard, ...]:
        """What can be said of each role from the file alone."""
        return tuple(card_of(role) for role in self.roles)

    def retry_of(self, tag: str) -> Retry:
        """What holds for the tasks of a tag: the first role that has it says so, else the team; no function refines."""
        roles = [role for role in self.roles if tag in role.tags]
        said = roles[0].retry.over(self.retry) if roles else self.retry
        has_function = any(isinstance(role, FunctionRole) for role in roles)
        return Retry.model_validate({**said.model_dump(), **({"refine": False} if has_function else {})})

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


def card_of(role: Role) -> RoleCard:
    """What can be said of a role from the file alone."""
    card = RoleCard(name=role.name, tags=role.tags, description=line(role.description))
    match role:
        case FunctionRole():
            return card.model_copy(update={"is_function": True, "inputs": role.inputs})
        case ModelRole():
            return card.model_copy(update={"tools": tuple(tool.use.rpartition(":")[2] for tool in role.tools)})
