"""Turns as the loop of a model has them, and as they are stored."""

from collections.abc import Iterable

from muster_agent.models.port import Reply, ToolCall, ToolOutput, Turn
from muster_protocol.messages.turns import CallAsked, StoredOutput, StoredReply
from muster_protocol.turns.fold import Step


def stored_reply(reply: Reply) -> StoredReply:
    calls = tuple(CallAsked(id=call.id, name=call.name, arguments=dict(call.arguments)) for call in reply.tool_calls)
    return StoredReply(text=reply.text, tool_calls=calls, stop=reply.stop, native=reply.native)


def reply_of(stored: StoredReply) -> Reply:
    """What it cost is counted with its turn, and not again."""
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in stored.tool_calls)
    return Reply(stored.text, calls, stop=stored.stop, native=stored.native)


def stored_outputs(outputs: Iterable[ToolOutput]) -> tuple[StoredOutput, ...]:
    return tuple(StoredOutput(call_id=one.call_id, text=one.text, is_error=one.is_error) for one in outputs)


def output_of(stored: StoredOutput) -> ToolOutput:
    return ToolOutput(stored.call_id, stored.text, stored.is_error)


def turn_of(step: Step) -> Turn:
    return Turn(reply_of(step.reply), tuple(output_of(output) for output in step.outputs or ()))
