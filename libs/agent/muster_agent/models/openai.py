"""Any server that speaks OpenAI's chat API: OpenAI, vLLM, Ollama, gateways. The only module that imports `openai`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import httpx2
import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from muster_agent.errors import ModelAway
from muster_agent.limiting.headers import note_headers
from muster_agent.models.choose import Source
from muster_agent.models.keys import variable_of
from muster_agent.models.port import Ask, Price, Reply
from muster_agent.models.prompts import prompt
from muster_agent.models.wire.answers import no_answer, not_paid, refusal_of
from muster_agent.models.wire.chat_api import format_of, messages_of, reply_of, tools_of
from muster_protocol.errors import MusterError
from muster_protocol.messages import Usage

CALL_TIMEOUT_SECONDS = 180.0  # the task's own timeout is what usually ends a call
NO_KEY = "none"  # for servers that want none: the package wants one
_CHARACTERS_PER_TOKEN = 3  # where a server does not say what a call took; an estimate on the safe side
_PAID_UP = ("insufficient_quota", "billing_hard_limit_reached")  # codes of a 429 that no waiting mends


class OpenAI:
    """One model at one server. The package must not retry: it would sleep for as long as the server asks."""

    def __init__(self, name: str, source: Source, price: Price | None = None) -> None:
        self.name = name
        self.notice = ""
        self.is_llm = True
        self.provider = source.provider
        self.price = price
        self._source = source
        self._able = source.spec.capabilities
        self._client = AsyncOpenAI(
            api_key=source.key or NO_KEY,
            base_url=source.spec.base_url or "https://api.openai.com/v1",
            timeout=CALL_TIMEOUT_SECONDS,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [_note_response]}),
        )

    async def ask(self, ask: Ask) -> Reply:
        ask = ask if self._able.tools else replace(ask, tools=())
        create = cast("Any", self._client.chat.completions).create  # the messages are plain mappings
        wrote = ask.style.wrote if self._able.streaming else None
        try:
            if wrote is None:
                answer: object = await create(**self._request(ask))
                return self._whole(answer, ask)
            streamed: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
            gathered = Gathered()
            async for chunk in await create(**self._request(ask), **streamed):
                if said := gathered.add(chunk.to_dict()):
                    wrote(said)
        except openai.APIError as error:
            raise self._explained(error) from error
        except (httpx2.HTTPError, ValueError) as error:  # a body that ends early, or is not what it says
            raise no_answer(self.name, str(self._client.base_url.host), error) from error
        if gathered.finish is None:
            raise ModelAway(f"{self.name}: the reply ended in the middle")
        return reply_of(
            gathered.message, gathered.finish, self._usage(gathered.usage, ask, gathered.message), self.name
        )

    async def close(self) -> None:
        await self._client.close()

    def _request(self, ask: Ask) -> dict[str, Any]:
        binds = self._able.structured_output
        # Servers of one's own know the old name of the limit; OpenAI's newest models know only the new one.
        limit = "max_completion_tokens" if self._source.spec.base_url is None else "max_tokens"
        request: dict[str, Any] = {
            "model": self.name,
            "messages": messages_of(ask, binds=binds),
            limit: ask.max_tokens,
        }
        if ask.tools:
            request["tools"] = tools_of(ask)
            if ask.is_last:
                request["tool_choice"] = "none"
            elif not self._able.parallel_tool_calls:
                request["parallel_tool_calls"] = False
        if binds and (form := format_of(ask)) is not None:
            request["response_format"] = form
        if ask.style.effort is not None:
            request["reasoning_effort"] = ask.style.effort
        return request

    def _whole(self, answer: object, ask: Ask) -> Reply:
        if not isinstance(answer, ChatCompletion) or not answer.to_dict().get("choices"):
            raise ModelAway(f"{self.name}: the server did not answer with a chat completion")
        fields = cast("dict[str, Any]", answer.to_dict())
        choice = fields["choices"][0]
        message = cast("dict[str, Any]", choice.get("message") or {})
        return reply_of(message, choice.get("finish_reason"), self._usage(fields.get("usage"), ask, message), self.name)

    def _usage(self, said: Mapping[str, Any] | None, ask: Ask, message: Mapping[str, Any]) -> Usage:
        if not said:  # some servers say nothing in a stream
            read = sum(len(text) for text in prompt(ask)) // _CHARACTERS_PER_TOKEN
            usage = Usage(input_tokens=read, output_tokens=math.ceil(len(str(message)) / _CHARACTERS_PER_TOKEN))
        else:
            read = int(said.get("prompt_tokens") or 0)
            details = cast("Mapping[str, Any]", said.get("prompt_tokens_details") or {})
            cached = int(details.get("cached_tokens") or 0)
            usage = Usage(
                input_tokens=read,
                output_tokens=int(said.get("completion_tokens") or 0),
                cache_read_tokens=min(read, cached),
            )
        usd = self.price.usd_of(usage) if self.price else 0.0
        return usage.model_copy(update={"usd": usd, "model_calls": 1})

    def _explained(self, error: openai.APIError) -> MusterError:
        if error.code in _PAID_UP:
            return not_paid(self.name, error.message)
        if not isinstance(error, openai.APIStatusError):
            return no_answer(self.name, str(self._client.base_url.host), error)
        where = variable_of(self._source.spec) or str(self._source.spec.api_key_file or "the server")
        return refusal_of(self.name, error.status_code, error.message, error.response.headers, where)


async def _note_response(response: httpx2.Response) -> None:
    note_headers(response.headers)


class Gathered:
    """The message that the chunks of a stream make."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"content": "", "refusal": "", "tool_calls": []}
        self.finish: str | None = None
        self.usage: Mapping[str, Any] | None = None

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Take a chunk; returns the text that is new in it."""
        self.usage = chunk.get("usage") or self.usage
        choices = cast("list[Mapping[str, Any]]", chunk.get("choices") or [])
        if not choices:
            return ""
        delta = cast("Mapping[str, Any]", choices[0].get("delta") or {})
        self.finish = choices[0].get("finish_reason") or self.finish
        for part in cast("list[Mapping[str, Any]]", delta.get("tool_calls") or []):
            self._add_call(part)
        self.message["refusal"] += delta.get("refusal") or ""
        text = str(delta.get("content") or "")
        self.message["content"] += text
        return text

    def _add_call(self, part: Mapping[str, Any]) -> None:
        calls = cast("list[dict[str, Any]]", self.message["tool_calls"])
        number = int(part.get("index") or 0)
        if number > len(calls):
            raise ValueError(f"call {number} of a stream came before call {len(calls)}")
        if number == len(calls):
            calls.append({"id": "", "function": {"name": "", "arguments": ""}})
        function = cast("Mapping[str, Any]", part.get("function") or {})
        call = calls[number]
        call["id"] = part.get("id") or call["id"]
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
