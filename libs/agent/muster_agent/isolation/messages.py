"""What a worker and a process that runs functions say to each other. JSON in JSON keeps what JSON alone knows."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from muster_agent.isolation.frames import Garbage, framed
from muster_protocol.plan import Frozen


class ToolRun(Frozen):
    """Call a tool with what a model gave as its arguments."""

    kind: Literal["tool"] = "tool"
    function: str
    folder: Path
    seconds: float
    arguments: str  # JSON
    key: str | None = None  # of a call that its receiver knows when it is repeated


class RoleRun(Frozen):
    """Call a function role."""

    kind: Literal["role"] = "role"
    function: str
    folder: Path
    seconds: float
    role: str
    spawns: bool
    task: str  # JSON
    outputs: str  # JSON
    notes: tuple[str, ...] = ()


class Notes(Frozen):
    """What people have said meanwhile."""

    kind: Literal["notes"] = "notes"
    texts: tuple[str, ...]


class Ready(Frozen):
    """The process takes calls."""

    kind: Literal["ready"] = "ready"


class Progressed(Frozen):
    """A function says how it goes."""

    kind: Literal["progress"] = "progress"
    text: str


class Used(Frozen):
    """A function says that it has used a tool."""

    kind: Literal["used"] = "used"
    tool: str
    seconds: float
    error: str | None
    error_class: str | None


class Returned(Frozen):
    """A function has returned; `has_started` is whether processes may be left of it."""

    kind: Literal["returned"] = "returned"
    output: str  # JSON
    tasks: str = "[]"  # JSON: what `ctx.spawn` was called with
    has_started: bool = False


class Raised(Frozen):
    """A function has raised: what the worker would say of it if it had been raised there."""

    kind: Literal["raised"] = "raised"
    error_class: str
    text: str  # for a role
    said: str  # for a model whose tool it is
    place: str = ""
    stack: str | None = None
    is_final: bool = False
    has_started: bool = False
    is_out_of_memory: bool = False


Run = ToolRun | RoleRun
Ending = Returned | Raised
_TO_PROCESS: TypeAdapter[Run | Notes] = TypeAdapter(Annotated[Run | Notes, Field(discriminator="kind")])
_TO_WORKER: TypeAdapter[Ready | Progressed | Used | Ending] = TypeAdapter(
    Annotated[Ready | Progressed | Used | Ending, Field(discriminator="kind")]
)


def frame(message: Frozen) -> bytes:
    return framed(message.model_dump_json().encode())


def told_to_process(body: bytes) -> Run | Notes:
    return _TO_PROCESS.validate_json(body)


def told_to_worker(body: bytes) -> Ready | Progressed | Used | Ending:
    """What a process says; Garbage if it is none of it."""
    try:
        return _TO_WORKER.validate_json(body)
    except ValidationError as error:
        raise Garbage(f"{body[:40]!r} is no message") from error
