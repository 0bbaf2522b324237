"""The spans of what an agent does: its model calls and its tool calls, under whatever span is open.

Nothing is passed in: where no service traces, or the request is not sampled, these do nothing.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Span, SpanKind

from muster_agent.models.port import Ask, Model, Reply, ToolCall
from muster_agent.models.prompts import prompt
from muster_bus.tracing import names
from muster_bus.tracing.tracing import Tracing, current, fail


@contextmanager
def chat(model: Model, ask: Ask) -> Generator[Span | None]:
    """One call of a model, with all its retries."""
    tracing, name = current(), model.name.partition(" ")[0]
    if not tracing.is_on:
        yield None
        return
    attributes = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: model.provider.removesuffix("-base-url") or names.OUR_PROVIDER,
        names.MODEL: name,
        names.MAX_TOKENS: ask.max_tokens,
    }
    kind = SpanKind.CLIENT if model.is_llm else SpanKind.INTERNAL
    with tracing.span(f"{names.CHAT} {name}", {**attributes, **_asked(tracing, ask)}, kind) as span:
        yield span


def replied(span: Span | None, reply: Reply) -> None:
    """What the model replied, and what that cost."""
    if span is None:
        return
    tracing = current()
    attributes: dict[str, Any] = {
        names.INPUT_TOKENS: reply.usage.input_tokens,
        names.OUTPUT_TOKENS: reply.usage.output_tokens,
        names.USD: reply.usage.usd,
        names.FINISH_REASONS: [reply.stop],
    }
    if tracing.content is not None:
        calls = [{"type": "tool_call", "id": call.id, "name": call.name} for call in reply.tool_calls]
        text = {"type": "text", "content": tracing.content(reply.text)}
        attributes[names.OUTPUT_MESSAGES] = json.dumps([{"role": "assistant", "parts": [text, *calls]}])
    span.set_attributes(attributes)


@contextmanager
def execute_tool(call: ToolCall) -> Generator[Span | None]:
    """One call of a tool."""
    tracing = current()
    if not tracing.is_on:
        yield None
        return
    attributes = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL: call.name,
        names.TOOL_TYPE: "function",
        names.TOOL_CALL_ID: call.id,
    }
    if tracing.content is not None:
        attributes[names.TOOL_ARGUMENTS] = tracing.content(_json(call.arguments))
    with tracing.span(f"{names.EXECUTE_TOOL} {call.name}", attributes) as span:
        yield span


def used(span: Span | None, text: str, error_class: str | None) -> None:
    """What a tool returned, or the class of the error that its text describes."""
    if span is None:
        return
    content = current().content
    if content is not None:
        span.set_attribute(names.TOOL_RESULT, content(text))
    if error_class is not None:
        fail(span, error_class, content(text) if content is not None else "")


def _asked(tracing: Tracing, ask: Ask) -> Mapping[str, str]:
    if tracing.content is None:
        return {}
    system, user = (tracing.content(text) for text in prompt(ask))
    parts = (("system", system), ("user", user))
    said = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in parts]
    return {names.INPUT_MESSAGES: json.dumps(said, ensure_ascii=False)}


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, default=str)
