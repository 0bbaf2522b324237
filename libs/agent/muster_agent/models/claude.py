"""Claude through the Messages API. The only module that imports `anthropic`; it is imported only if there is a key."""

import time
from collections.abc import Mapping
from typing import Any, cast

import anthropic
from anthropic import AsyncAnthropic, transform_schema
from anthropic.types import Message
from pydantic import BaseModel

from muster_agent.errors import KeyRefused, ModelAway, RateLimited
from muster_agent.models.choose import provider_at
from muster_agent.models.port import Ask, JudgeBrief, PlanBrief, Price, RefineBrief, Reply, Stop, ToolCall, Turn
from muster_agent.models.prompts import prompt
from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.draft import Choice, PlanDraft, ReplaceDraft, ReviewDraft
from muster_agent.models.prompts.work import LAST_TURN, left_text
from muster_agent.models.refined import RefineDraft
from muster_agent.models.standing import ReplaceBrief, ReviewBrief
from muster_protocol.calling.retry_after import asked_seconds
from muster_protocol.errors import MusterError, Terminal
from muster_protocol.messages import Usage

CALL_TIMEOUT_SECONDS = 180.0  # the task's own timeout is what usually ends a call
_STOPS: Mapping[str, Stop] = {"end_turn": "end", "tool_use": "tools", "max_tokens": "length", "refusal": "refusal"}
_FORMS: Mapping[type, type[BaseModel]] = {
    PlanBrief: PlanDraft,
    RefineBrief: RefineDraft,
    ReviewBrief: ReviewDraft,
    ReplaceBrief: ReplaceDraft,
    JudgeBrief: Choice,
}
# US dollars per million tokens; a team file's `prices` come first.
LIST_PRICES = {
    "claude-opus-5-5": Price(input=4, output=20),
    "claude-sonnet-5-5": Price(input=2, output=10),
}


class Claude:
    """One model at one endpoint. The SDK must not retry: it would sleep for as long as the server asks."""

    def __init__(self, name: str, key: str, base_url: str | None = None, price: Price | None = None) -> None:
        self.name = name
        self.notice = ""
        self.is_llm = True
        self.provider = provider_at(base_url)
        self.price = price or LIST_PRICES.get(name)
        self._client = AsyncAnthropic(
            api_key=key,
            base_url=base_url,
            timeout=CALL_TIMEOUT_SECONDS,
            max_retries=0,
            open_telemetry=False,  # every model call has one span, and it is ours
        )

    async def ask(self, ask: Ask) -> Reply:
        system, first = prompt(ask)
        options: dict[str, Any] = {}
        if ask.tools:
            options["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
                for tool in ask.tools
            ]
            if ask.is_last:  # they stay listed: the calls of former turns refer to them
                options["tool_choice"] = {"type": "none"}
        if (form := _FORMS.get(type(ask.brief))) is not None:
            options["output_config"] = {"format": {"type": "json_schema", "schema": transform_schema(form)}}
        # Untyped on purpose: tools and transcript are plain dicts, which the types of the SDK do not allow.
        create = cast("Any", self._client.messages).create
        try:
            message: object = await create(
                model=self.name,
                max_tokens=ask.max_tokens,
                system=system,
                messages=_conversation(first, ask),
                **options,
            )
        except anthropic.APIError as error:
            raise _explained(error, self.name) from error
        if not isinstance(message, Message):  # such as a proxy that answers 200 with HTML
            raise ModelAway(f"{self.name}: the server did not answer with JSON")
        return self._reply(message)

    async def close(self) -> None:
        await self._client.close()

    def _reply(self, message: Message) -> Reply:
        # Blocks are picked by type: a reply may begin with thinking, and may have types that are not known yet.
        calls = tuple(
            ToolCall(block.id, block.name, cast("dict[str, Any]", block.input))
            for block in message.content
            if block.type == "tool_use"
        )
        text = "".join(block.text for block in message.content if block.type == "text")
        stop = _STOPS.get(message.stop_reason or "", "other")
        if stop == "other":
            text = f"stop reason {message.stop_reason}"
        native = [block.to_dict() for block in message.content]
        return Reply(text, calls, self._usage(message), stop, native)

    def _usage(self, message: Message) -> Usage:
        usage = message.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        read, written = usage.input_tokens + cached, usage.output_tokens
        usd = self.price.usd(read, written) if self.price else 0.0
        return Usage(input_tokens=read, output_tokens=written, usd=usd, model_calls=1)


def _conversation(first: str, ask: Ask) -> list[Any]:
    """The task and all turns, then what is left; who could use tools is told when no further turn will come."""
    said: list[Any] = [{"type": "text", "text": first}]
    messages: list[Any] = [{"role": "user", "content": said}]
    for turn in ask.transcript:
        messages += _messages(turn, Boundary(ask.mark))
    told = [left_text(ask.left)] if ask.left is not None else []
    told += [LAST_TURN] if ask.is_last and ask.tools else []
    if told:  # after the outputs, as the API demands; a block of its own, so that what stands before it stays the same
        messages[-1]["content"].append({"type": "text", "text": "\n\n".join(told)})
    return messages


def _messages(turn: Turn, data: Boundary) -> list[Any]:
    """The reply unchanged, with its thinking, and the outputs of all its tool calls in one message."""
    outputs = [
        {
            "type": "tool_result",
            "tool_use_id": output.call_id,
            "content": data("tool", output.text),
            "is_error": output.is_error,
        }
        for output in turn.outputs
    ]
    return [{"role": "assistant", "content": turn.reply.native}, {"role": "user", "content": outputs}]


def _explained(error: anthropic.APIError, model: str) -> MusterError:
    if not isinstance(error, anthropic.APIStatusError):
        return ModelAway(f"{model}: no answer from {error.request.url.host}: {error}")
    status, reason = error.status_code, error.message
    if status in (408, 409, 429) or status >= 500:
        kind = RateLimited if status == 429 else ModelAway
        return kind(f"{model} is busy or limited ({status}): {reason}", _retry_after(error.response.headers))
    if status in (401, 403):
        way_out = "check ANTHROPIC_API_KEY and what the key may use, or set model: offline"
        return KeyRefused(f"{model}: the key was refused ({status}): {reason}; {way_out}")
    if status == 404:
        return Terminal(f"{model}: not found ({status}): {reason}; check the model's name in the team file")
    if status == 402:
        return Terminal(f"{model}: not paid for ({status}): {reason}; check the account's billing")
    return Terminal(f"{model} refuses the request ({status}): {reason}; see `tools` and limits in the team file")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks for; None if it does not, or nothing that can be read."""
    now, date = time.time(), headers.get("date")
    milliseconds = asked_seconds(headers.get("retry-after-ms"), date, now)
    return asked_seconds(headers.get("retry-after"), date, now) if milliseconds is None else milliseconds / 1000
