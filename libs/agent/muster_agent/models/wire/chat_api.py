"""The messages of OpenAI's chat API for an ask, and the reply that one of its messages is. No package is needed."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from muster_agent.models.port import Ask, Reply, Stop, ToolCall, Turn
from muster_agent.models.prompts import prompt
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.work import LAST_TURN, left_text
from muster_agent.models.wire.structured import FORMS, closed, closed_form, is_complete, wanted_schema
from muster_protocol.messages import Usage

UNREADABLE = "not_json"  # under which a tool gets arguments that are no JSON object: its error tells the model
_STOPS: Mapping[str, Stop] = {"stop": "end", "tool_calls": "tools", "length": "length", "content_filter": "refusal"}
_BOUND = "\n\nReply with one JSON value that fits this JSON Schema, and nothing else:\n"


def messages_of(ask: Ask, *, binds: bool) -> list[dict[str, Any]]:
    """The task and all turns; what is left is told at their end. `binds`: the server binds a reply to a schema."""
    system, first = prompt(ask)
    form = FORMS.get(type(ask.brief))
    if form is not None and not binds:
        system += f"{_BOUND}{json.dumps(closed_form(form), ensure_ascii=False)}"
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": first}]
    for turn in ask.transcript:
        messages += _turn(turn, Boundary(ask.mark))
    told = [left_text(ask.left)] if ask.left is not None else []
    told += [LAST_TURN] if ask.is_last and ask.tools else []
    if told:  # in the last message: many templates allow none of the user's after an output
        messages[-1]["content"] = "\n\n".join([messages[-1]["content"], *told])
    return messages


def tools_of(ask: Ask) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
        }
        for tool in ask.tools
    ]


def format_of(ask: Ask) -> dict[str, Any] | None:
    """What binds the reply to a schema; None: nothing does."""
    form, wanted = FORMS.get(type(ask.brief)), wanted_schema(ask.brief)
    schema = closed_form(form) if form is not None else None if wanted is None else closed(wanted)
    if schema is None:
        return None
    name = "reply" if form is None else form.__name__
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": is_complete(schema)}}


def reply_of(message: Mapping[str, Any], finish: str | None, usage: Usage, model: str) -> Reply:
    """The reply that a message of the assistant is."""
    calls = tuple(_calls(message.get("tool_calls") or ()))
    text, refusal = str(message.get("content") or ""), message.get("refusal")
    native = {"model": model, "message": _said(text, calls)}
    if refusal:
        return Reply(str(refusal), (), usage, "refusal", native)
    stop = _STOPS.get(finish or "", "other")
    if calls and stop == "end":
        stop = "tools"  # some servers end a reply with calls by `stop`
    return Reply(f"finish reason {finish}" if stop == "other" else text, calls, usage, stop, native)


def _calls(said: Iterable[Mapping[str, Any]]) -> Iterable[ToolCall]:
    for number, call in enumerate(said):
        function = cast("Mapping[str, Any]", call.get("function") or {})
        written = function.get("arguments") or "{}"
        try:
            arguments: object = json.loads(written) if isinstance(written, str) else written
        except ValueError:
            arguments = None
        known = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {UNREADABLE: str(written)}
        yield ToolCall(str(call.get("id") or f"call_{number}"), str(function.get("name") or ""), known)


def _turn(turn: Turn, data: Boundary) -> list[dict[str, Any]]:
    outputs = [
        {"role": "tool", "tool_call_id": output.call_id, "content": data("tool", output.text)}
        for output in turn.outputs
    ]
    return [_said(turn.reply.text, turn.reply.tool_calls), *outputs]


def _said(text: str, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    """A reply as it is sent back; the same whichever model gave it."""
    said: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
            }
            for call in calls
        ]
    return said
