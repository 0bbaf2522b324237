"""The model port: a typed brief with tools goes in, text or tool calls with their cost come out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from muster_agent.errors import BadOutput, Refused
from muster_agent.models.standing import ReplaceBrief, ReviewBrief
from muster_protocol.messages import Output, Usage
from muster_protocol.workers.role_card import RoleCard

MAX_TOKENS = 8192  # a worker's answer is a page or two; longer ones are better split into tasks
CONTEXT_TOKENS = 180_000  # that a model can read at once, with its reply; most of today's can read more
MAX_TURNS = 10  # a model that needs more repeats itself
Stop = Literal["end", "tools", "length", "refusal", "other"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]


class Price(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)  # of tokens in that come from a cache; None: as any others
    cache_write: float | None = Field(default=None, ge=0)  # of tokens in that are put into it

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000

    def usd_of(self, usage: Usage) -> float:
        """What a call cost: its tokens in, some of them from a cache or into it, and those out."""
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        plain = usage.input_tokens - read - written
        cached = read * _or(self.cache_read, self.input) + written * _or(self.cache_write, self.input)
        return self.usd(plain, usage.output_tokens) + cached / 1_000_000

    def most_usd(self, input_tokens: int, output_tokens: int) -> float:
        """The most that so many tokens can cost: all of them may be put into a cache."""
        dearest = max(self.input, _or(self.cache_write, 0.0))
        return (input_tokens * dearest + output_tokens * self.output) / 1_000_000


def _or(price: float | None, usual: float) -> float:
    return usual if price is None else price


FREE = Price(input=0, output=0)
NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class PlanBrief:
    """Break a request into tasks for these roles. After a refused draft it has the draft and its mistakes."""

    text: str
    roles: tuple[RoleCard, ...]
    away: tuple[str, ...] = ()  # of these roles no worker is up
    workers: tuple[str, ...] = ()  # names by which a task may ask for one worker
    persona: str = ""
    guidelines: str = ""
    num_tasks: int | None = None
    max_tasks: int | None = None
    tokens: int | None = None  # the most that the whole request may spend
    usd: float | None = None
    max_attempts: int | None = None
    seconds: float | None = None  # until the deadline
    today: str = ""
    notes: Sequence[str] = ()  # of people
    draft: str = ""
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkBrief:
    """Do one task. A worker does not need the goal, the plan or the other roles, so they are not in it."""

    description: str
    persona: str = ""
    guidelines: str = ""
    expected_output: str | Mapping[str, Any] | None = None
    context: Mapping[str, Output] = field(default_factory=dict[str, Output])
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: Sequence[str] = ()  # of people; it may grow while the task is done, and is read for each reply


@dataclass(frozen=True, slots=True)
class RefineBrief:
    """Rewrite the description of a failed task so that the next attempt avoids the error, or say that no words can.

    `description` is the task's own, `last` what the failed attempt was given if that was another one.
    """

    description: str
    error: str
    last: str = ""
    role: RoleCard | None = None
    persona: str = ""
    tools: tuple[str, ...] = ()
    expected_output: str | Mapping[str, Any] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    attempts_left: int = 1
    notes: Sequence[str] = ()  # of people


@dataclass(frozen=True, slots=True)
class ComposeBrief:
    """Make one answer from the outputs of the tasks; `gaps` lists what is missing."""

    goal: str
    outputs: Mapping[str, Output]
    instruction: str = ""
    gaps: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()  # that were found between the outputs
    schema: Mapping[str, Any] | None = None  # the answer is one JSON value that fits it
    draft: str = ""  # an answer that does not fit the schema, and what is wrong with it
    mistakes: tuple[str, ...] = ()
    request: str = ""
    notes: Sequence[str] = ()  # of people
    asked: Mapping[str, str] = field(default_factory=dict[str, str])  # of each output: what was asked, and of whom


@dataclass(frozen=True, slots=True)
class JudgeBrief:
    """Pick the best of several outputs, by its name, with the reason."""

    goal: str
    outputs: Mapping[str, Output]
    instruction: str = ""
    contradictions: tuple[str, ...] = ()
    request: str = ""


@dataclass(frozen=True, slots=True)
class ReduceBrief:
    """Make outputs shorter that are too long to be combined at once; every fact stays."""

    goal: str
    outputs: Mapping[str, Output]
    request: str = ""


Brief = PlanBrief | WorkBrief | RefineBrief | ReviewBrief | ReplaceBrief | ComposeBrief | JudgeBrief | ReduceBrief


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model sees of a tool."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of one tool call."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a model. `native` is the provider's own form of it as JSON, with the model that wrote it: that one
    gets it back unchanged in the next turn, any other gets text and calls."""

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
class Left:
    """What an attempt may still use when a model is asked; None: no limit that is known."""

    turns: int
    tokens: int | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Style:
    """How a role's model is to work; None: as it does by itself. `wrote` gets what it writes while it is written."""

    effort: Effort | None = None
    thinking: bool | None = None
    wrote: Callable[[str], None] | None = None


PLAIN = Style()


def new_mark() -> str:
    """What nobody can guess who writes a text that becomes data in a prompt."""
    return token_hex(6)


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of a model. `mark` is in the boundaries of its prompt, and stays the same over the turns of a task."""

    brief: Brief
    tools: tuple[ToolSpec, ...] = ()
    transcript: tuple[Turn, ...] = ()
    max_tokens: int = MAX_TOKENS
    is_last: bool = False  # whatever tools it calls now, nobody will run them
    left: Left | None = None
    style: Style = PLAIN
    mark: str = field(default_factory=new_mark, compare=False)

    def after(self, turn: Turn) -> "Ask":
        return replace(self, transcript=(*self.transcript, turn))


def as_text(output: Output) -> str:
    """An output as text: a string as it is, anything else as indented JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


class Model(Protocol):
    """A model. `notice` is what a person should be told about it; `price` is None when it is unknown,

    `provider` is whose service it asks, empty if it asks nobody's.
    """

    @property
    def name(self) -> str: ...
    @property
    def notice(self) -> str: ...
    @property
    def is_llm(self) -> bool: ...
    @property
    def provider(self) -> str: ...
    @property
    def price(self) -> Price | None: ...

    async def ask(self, ask: Ask) -> Reply: ...


def require_complete(reply: Reply) -> Reply:
    """The reply if it is complete; otherwise an error that says why not."""
    match reply.stop:
        case "end" | "tools":
            if not reply.tool_calls and not reply.text.strip():
                raise BadOutput("the model's reply is empty: neither text nor a tool call")
            return reply
        case "length":
            raise BadOutput("the model's reply was cut off at its token limit; ask for less at once or raise the limit")
        case "refusal":
            raise Refused(f"the model declines this task: {reply.text or 'no reason given'}")
        case "other":
            raise BadOutput(f"the model stopped without an answer: {reply.text or 'no reason given'}")
