"""Where a model role keeps what it does for a task, so that whoever takes the task next goes on there: the port.

The order is: `past`, once; `begin` before tools run that a former worker did not see to their end; `asking` before
each call of the model, `replied` or `unanswered` after it, `ran` after the tools; `intend` and `settle` around a tool
with an effect. `UNSTORED` keeps nothing: for models that cost nothing, and for a role that is tried out.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from muster_agent.models.port import NOTHING, Ask, Model, Reply, ToolCall, ToolOutput, Turn
from muster_protocol.errors import MusterError, Terminal
from muster_protocol.messages import Usage


class Overtaken(MusterError):
    """Somebody else has the task: stop. `uncounted` is the cost of a reply that nobody else counts."""

    def __init__(self, reason: str, uncounted: Usage = NOTHING) -> None:
        super().__init__(reason)
        self.uncounted = uncounted


class Moved(MusterError):
    """Somebody stored something meanwhile: read again what there is."""


class UnknownOutcome(Terminal):
    """A tool with an effect was called, and nobody knows what came of it."""

    error_class = "unknown_outcome"


@dataclass(frozen=True, slots=True)
class Past:
    """What is stored of the work on a task."""

    turns: tuple[Turn, ...] = ()
    reply: Reply | None = None  # the last one, if not all its tools were seen to their end, or if it has none
    tool_calls: tuple[dict[str, Any], ...] = ()  # of the turns, as the result shows them
    usage: Usage = NOTHING  # spent for the same attempt
    before: Usage | None = None  # spent for former attempts; None: nothing is kept


@dataclass(frozen=True, slots=True)
class EffectCall:
    """One call of a tool with an effect."""

    key: str
    call: ToolCall


class Turns(Protocol):
    """Keeps the turns of one attempt. Every method that waits raises Overtaken where somebody else has the task."""

    @property
    def scope(self) -> str:
        """What the keys of effects are made of: the same for every attempt at the task."""
        ...

    async def past(self, ask: Ask, model: Model, /) -> Past: ...
    async def begin(self) -> None: ...
    async def asking(self, most: Usage, /) -> None: ...
    async def replied(self, reply: Reply, /) -> None: ...
    async def unanswered(self) -> None: ...
    def ran(self, outputs: Sequence[ToolOutput], tool_calls: Sequence[dict[str, Any]], /) -> None: ...
    def outcome_of(self, key: str, /) -> tuple[bool, ToolOutput | None]:
        """Whether a call with this key was begun, and what came of it as far as that is known."""
        ...

    async def intend(self, effect: EffectCall, /) -> None: ...
    async def settle(self, effect: EffectCall, outcome: ToolOutput, /) -> None: ...


class Unstored:
    """Keeps nothing."""

    def __init__(self, scope: str = "") -> None:
        self.scope = scope

    async def past(self, *_: object) -> Past:
        return Past()

    async def nothing(self, *_: object) -> None:
        return

    begin = asking = replied = unanswered = intend = settle = nothing

    def ran(self, *_: object) -> None:
        return

    def outcome_of(self, *_: object) -> tuple[bool, ToolOutput | None]:
        return False, None


UNSTORED: Turns = Unstored()


def fits_of(ask: Ask, model: Model) -> str:
    """A hash of what is asked. What people say meanwhile is no reason to begin anew, and neither is another model: a
    fallback goes on with what the first one has done. Rules and models do not take over from each other."""
    brief = {name: value for name, value in asdict(ask.brief).items() if name != "notes"}
    asked = [model.is_llm, brief, [asdict(tool) for tool in ask.tools]]
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:32]
