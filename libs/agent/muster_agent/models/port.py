"""The model port: a typed brief with tools goes in, text or tool calls with their cost come out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from muster_agent.errors import BadOutput, Refused
from muster_protocol.messages import Output, Usage

MAX_TOKENS = 8192  # a worker's answer is a page or two; longer ones are better split into tasks
Stop = Literal["end", "tools", "length", "refusal", "other"]


class Price(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


FREE = Price(input=0, output=0)
NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class RoleCard:
    """What a planner may know about a role."""

    name: str
    tags: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class PlanBrief:
    """Break a request into tasks for these roles. After a refused draft: the draft and what was wrong with it."""

    text: str
    roles: tuple[RoleCard, ...]
    persona: str = ""
    num_tasks: int | None = None
    max_tasks: int | None = None
    draft: str = ""
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkBrief:
    """Do one task. It holds neither the goal nor the plan nor the other roles: a worker needs none of them."""

    description: str
    persona: str = ""
    expected_output: str | Mapping[str, Any] | None = None
    context: Mapping[str, Output] = field(default_factory=dict[str, Output])


@dataclass(frozen=True, slots=True)
class RefineBrief:
    """Say a failed task again so that the next attempt avoids the error."""

    description: str
    error: str


@dataclass(frozen=True, slots=True)
class ComposeBrief:
    """Make one answer of the tasks' outputs; `gaps` says what is missing."""

    goal: str
    outputs: Mapping[str, Output]
    instruction: str = ""
    gaps: tuple[str, ...] = ()


Brief = PlanBrief | WorkBrief | RefineBrief | ComposeBrief


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants done."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What came of a tool call."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. `native` is the provider's own form of it, passed back unchanged in the next turn."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NOTHING
    stop: Stop = "end"
    native: object = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply with tool calls, and the outputs of all of them."""

    reply: Reply
    outputs: tuple[ToolOutput, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of a model."""

    brief: Brief
    tools: tuple[ToolSpec, ...] = ()
    transcript: tuple[Turn, ...] = ()
    max_tokens: int = MAX_TOKENS

    def after(self, turn: Turn) -> "Ask":
        return replace(self, transcript=(*self.transcript, turn))


def as_text(output: Output) -> str:
    """An output as it stands in a text: as it is, or as JSON that people can read."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


class Model(Protocol):
    """Who answers. `said` is what a person should be told about the choice; `price` is None when it is unknown."""

    @property
    def name(self) -> str: ...
    @property
    def notice(self) -> str: ...
    @property
    def is_llm(self) -> bool: ...
    @property
    def price(self) -> Price | None: ...

    async def ask(self, ask: Ask) -> Reply: ...


def require_complete(reply: Reply) -> Reply:
    """The reply if it is whole; otherwise the reason why not."""
    match reply.stop:
        case "end" | "tools":
            return reply
        case "length":
            raise BadOutput("the model's reply was cut off at its token limit; ask for less at once or raise the limit")
        case "refusal":
            raise Refused(f"the model declines this task: {reply.text or 'no reason given'}")
        case "other":
            raise BadOutput(f"the model stopped without an answer: {reply.text or 'no reason given'}")
