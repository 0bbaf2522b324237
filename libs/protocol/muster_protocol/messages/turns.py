"""On `turns.<request_id>.<task_id>`: what a model role does for a task, so that nothing of it is paid twice.

Every entry is compare-and-set on the subject's last sequence. Who has the last claim writes; everybody else is refused.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from muster_protocol import subjects
from muster_protocol.messages.base import Message, Usage
from muster_protocol.plan import Frozen
from muster_protocol.sender import Origin
from muster_protocol.subjects import TaskId


class TurnEntry(Message):
    """What all of them have in common. Their ids are unique to one write."""

    task_id: TaskId

    def subject_for(self, origin: Origin) -> str:
        return subjects.turns(origin.request_id, self.task_id)

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.task_id}.{self.kind}.{origin.sender.instance}.{origin.nonce}"


class Claim(TurnEntry):
    """A worker begins, or goes on with, an attempt. Before this is stored it calls no model."""

    kind: ClassVar[str] = "claim"

    attempt: int = Field(ge=1)
    worker: str
    delivery: int = 1
    task_sequence: int = 0  # of the task's message in TASKS
    fits: str = ""  # a hash of what the model is asked: turns of another question are of no use
    resumes: bool = False  # goes on with the turns of the attempt before
    asking: Usage = Usage()  # the most that the first call may cost; only where there is a budget


class CallAsked(Frozen):
    """A tool call that the model asks for."""

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class StoredReply(Frozen):
    """The reply of a model, with all that it needs to be sent back."""

    text: str = ""
    tool_calls: tuple[CallAsked, ...] = ()
    stop: Literal["end", "tools", "length", "refusal", "other"] = "end"
    native: Any = None  # the provider's own form of it


class ModelTurn(TurnEntry):
    """What a call of the model came to; no reply: the call failed, and nothing of it was paid."""

    kind: ClassVar[str] = "turn"
    free_text: ClassVar[tuple[str, ...]] = (
        "reply.text",
        "reply.tool_calls.id",
        "reply.tool_calls.name",
        "reply.tool_calls.arguments",
        "reply.native",
    )

    claim: int  # the sequence of its claim
    reply: StoredReply | None = None
    usage: Usage = Usage()


class StoredOutput(Frozen):
    """The output of one tool call."""

    call_id: str
    text: str
    is_error: bool = False


class ToolOutputs(TurnEntry):
    """The outputs of all tool calls of the turn before; the next call of the model follows."""

    kind: ClassVar[str] = "outputs"
    free_text: ClassVar[tuple[str, ...]] = ("outputs.call_id", "outputs.text", "tool_calls")

    claim: int
    outputs: tuple[StoredOutput, ...]
    tool_calls: tuple[dict[str, Any], ...] = ()  # as the result shows them
    asking: Usage = Usage()  # the most that the next call may cost; only where there is a budget


class Effect(TurnEntry):
    """A tool with an effect is about to be called; with an outcome: it was."""

    kind: ClassVar[str] = "effect"
    free_text: ClassVar[tuple[str, ...]] = ("tool", "arguments", "outcome.call_id", "outcome.text")

    claim: int
    key: str  # of task, tool, arguments and occurrence: the same in every attempt
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    outcome: StoredOutput | None = None
