"""The request of the Messages API for an ask, what of it is cached, and what a reply says. No package is needed.

Tools come first in what the provider caches, then the system text: one mark at the end of its stable part caches both
for an hour, for all tasks of the role. What follows has the boundary of this one prompt. While a task goes on with
tools, a second mark caches its conversation for some minutes, so that each turn pays for what is new in it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from muster_agent.models.port import Ask, Reply, Stop, ToolCall, Turn
from muster_agent.models.prompts import prompt
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.work import LAST_TURN, left_text
from muster_protocol.messages import Usage

FOR_AN_HOUR: Mapping[str, str] = {"type": "ephemeral", "ttl": "1h"}
FOR_MINUTES: Mapping[str, str] = {"type": "ephemeral"}
MIN_CACHED = 4_000  # characters: below about 1,024 tokens nothing is cached
_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")
_STOPS: Mapping[str, Stop] = {
    "end_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
Json = dict[str, Any]


def request_of(ask: Ask, model: str, schema: Mapping[str, Any] | None, *, caches: bool) -> Json:
    """All that is sent; `schema` is what the reply is bound to."""
    system, first = prompt(ask)
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)} for tool in ask.tools
    ]
    stable, rest = _split(system, ask.mark)
    is_long = len(stable) + len(str(tools)) >= MIN_CACHED
    request: Json = {
        "model": model,
        "max_tokens": ask.max_tokens,
        "system": _system(stable, rest) if caches and is_long else system,
        "messages": _conversation(first, ask, model, caches=caches),
    }
    if tools:
        request["tools"] = tools
        if ask.is_last:  # they stay listed: the calls of former turns refer to them
            request["tool_choice"] = {"type": "none"}
    if ask.style.thinking is not None:
        request["thinking"] = {"type": "adaptive" if ask.style.thinking else "disabled"}
    output: Json = {} if ask.style.effort is None else {"effort": ask.style.effort}
    output |= {} if schema is None else {"format": {"type": "json_schema", "schema": schema}}
    return {**request, "output_config": output} if output else request


def reply_of(message: Mapping[str, Any], usage: Usage, model: str) -> Reply:
    """The reply that a message is. Blocks are picked by type: it may begin with thinking, and have unknown ones."""
    content = cast("list[Json]", message.get("content") or [])
    calls = tuple(
        ToolCall(str(block["id"]), str(block["name"]), cast("Json", block.get("input") or {}))
        for block in content
        if block.get("type") == "tool_use"
    )
    text = "".join(str(block.get("text") or "") for block in content if block.get("type") == "text")
    stop = _STOPS.get(str(message.get("stop_reason") or ""), "other")
    if stop == "other":
        text = f"stop reason {message.get('stop_reason')}"
    return Reply(text, calls, usage, stop, {"model": model, "content": content})


def usage_of(said: Mapping[str, Any] | None) -> Usage:
    """What a call took, without its price. All tokens in count, wherever they come from."""
    numbers = said or {}
    read, written = (int(numbers.get(f"cache_{what}_input_tokens") or 0) for what in ("read", "creation"))
    return Usage(
        input_tokens=int(numbers.get("input_tokens") or 0) + read + written,
        output_tokens=int(numbers.get("output_tokens") or 0),
        model_calls=1,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _split(system: str, mark: str) -> tuple[str, str]:
    """What is the same for all tasks of a role, and the rest from the line on that has this prompt's boundary."""
    at = system.find(mark)
    cut = len(system) if at < 0 else system.rfind("\n", 0, at) + 1
    return system[:cut], system[cut:]


def _system(stable: str, rest: str) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": stable, "cache_control": FOR_AN_HOUR}]
    return [*blocks, {"type": "text", "text": rest}] if rest.strip() else blocks


def _conversation(first: str, ask: Ask, model: str, *, caches: bool) -> list[Any]:
    """The task and all turns, then what is left; who could use tools is told when no further turn will come."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": first}]}]
    for turn in ask.transcript:
        messages += _messages(turn, Boundary(ask.mark), model)
    if caches and ask.tools and not ask.is_last:
        messages[-1]["content"][-1]["cache_control"] = FOR_MINUTES
    told = [left_text(ask.left)] if ask.left is not None else []
    told += [LAST_TURN] if ask.is_last and ask.tools else []
    if told:  # after the outputs, as the API demands; a block of its own, so that what stands before it stays the same
        messages[-1]["content"].append({"type": "text", "text": "\n\n".join(told)})
    return messages


def _messages(turn: Turn, data: Boundary, model: str) -> list[Any]:
    """The reply unchanged, with its thinking, and the outputs of all its tool calls in one message."""
    outputs = [
        {
            "type": "tool_result",
            "tool_use_id": _NOT_IN_AN_ID.sub("_", output.call_id),
            "content": data("tool", output.text),
            "is_error": output.is_error,
        }
        for output in turn.outputs
    ]
    return [{"role": "assistant", "content": _said(turn.reply, model)}, {"role": "user", "content": outputs}]


def _said(reply: Reply, model: str) -> Sequence[Json]:
    """The blocks of a reply. Thinking belongs to the model that thought it: another one gets text and calls."""
    native = cast("Json", reply.native) if isinstance(reply.native, dict) else {}
    if native.get("model") == model and isinstance(native.get("content"), list):
        return cast("list[Json]", native["content"])
    text = [{"type": "text", "text": reply.text}] if reply.text.strip() else []
    calls = [
        {
            "type": "tool_use",
            "id": _NOT_IN_AN_ID.sub("_", call.id),
            "name": call.name,
            "input": dict(call.arguments),
        }
        for call in reply.tool_calls
    ]
    return [*text, *calls]
