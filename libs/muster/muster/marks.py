"""`@tool`, `@role` and `Role`: what a team is made of. A function that is marked stays the function that it was."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from muster_agent.functions import check_handler
from muster_agent.models.port import Effort
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Invalid

F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[..., Any]
MARK = "__muster_role__"  # the attribute that holds the keys of a function role


class RoleKeys(TypedDict, total=False):
    """What both kinds of role may say of themselves, in the words of a team file."""

    tags: Sequence[str]
    description: str
    slots: int
    timeout_seconds: float | None
    retry: Mapping[str, Any]
    spawns: bool


class FunctionKeys(RoleKeys, total=False):
    """What a role that is a function may say besides."""

    name: str
    inputs: Mapping[str, str]
    isolated: bool
    memory_mb: int
    env: Sequence[str]


class ModelKeys(RoleKeys, total=False):
    """What a role that uses a model may say besides. A tool is a function, its name, or a mapping with `use`."""

    persona: str
    model: str | Sequence[str]
    other_model: str | None
    tools: Sequence[Function | str | Mapping[str, Any]]
    offline_seconds: float
    max_tokens: int
    max_turns: int
    context_tokens: int
    effort: Effort | None
    thinking: bool | None
    stream: bool


class Role:
    """A role that uses a model with tools: the keys of a team file, with functions in place of their names."""

    def __init__(self, name: str, **keys: Unpack[ModelKeys]) -> None:
        self.name = name
        self.keys: Mapping[str, Any] = {"name": name, **keys}

    def __repr__(self) -> str:
        return f"Role({self.name!r})"


def tool(function: F) -> F:
    """Say at once, where the function stands, whether a model could call it."""
    tool_of(function)
    return function


@overload
def role(function: F, /) -> F: ...
@overload
def role(**keys: Unpack[FunctionKeys]) -> Callable[[F], F]: ...
def role(function: F | None = None, /, **keys: Unpack[FunctionKeys]) -> F | Callable[[F], F]:
    """Make a function `handler(task, ctx)` a role, with its name and its docstring, unless others are said."""
    if isinstance(function, str):
        raise Invalid(f"a role that uses a model is Role({function!r}, …); @role is for functions", "role")

    def mark(function: F) -> F:
        check_handler(function, f"@role {_name(function)}")
        described = {"description": text} if (text := _first_paragraph(function)) else {}
        setattr(function, MARK, {"name": _name(function), **described, **keys})
        return function

    return mark if function is None else mark(function)


def keys_of(role: object) -> tuple[dict[str, Any], Function | None]:
    """What a role says of itself and, if it is one, its function."""
    if isinstance(role, Role):
        return dict(role.keys), None
    marked = getattr(role, MARK, None)
    if isinstance(marked, dict) and callable(role):
        return dict(cast("dict[str, Any]", marked)), role
    shown = f"{_name(role)} is no role: write @role above it" if callable(role) else f"{role!r} is no role"
    raise Invalid(f"{shown}; a role is a function with @role, or Role('writer', …)", "roles")


def _name(function: object) -> str:
    return str(getattr(function, "__name__", function))


def _first_paragraph(function: Function) -> str:
    return " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())
