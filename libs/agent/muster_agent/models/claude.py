"""Claude through the Messages API. The only module that imports `anthropic`; it is imported only where it is asked."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from json import JSONDecodeError
from typing import Any, Self, cast

import anthropic
import httpx2
from anthropic import AsyncAnthropic, AsyncAnthropicFoundry
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex
from anthropic.types import Message

from muster_agent.errors import ModelAway
from muster_agent.limiting.headers import note_reply
from muster_agent.models.choose import Source, provider_at
from muster_agent.models.keys import variable_of
from muster_agent.models.port import Ask, Price, Reply
from muster_agent.models.wire.answers import no_answer, not_paid, refusal_of
from muster_agent.models.wire.messages_api import reply_of, request_of, usage_of
from muster_agent.models.wire.structured import FORMS, closed, wanted_schema
from muster_agent.team.providers import ProviderSpec
from muster_protocol.errors import Misconfigured, MusterError

CALL_TIMEOUT_SECONDS = 180.0  # the task's own timeout is what usually ends a call
# US dollars per million tokens; a team file's `prices` come first.
LIST_PRICES = {
    "claude-opus-5-5": Price(input=4, output=20),
    "claude-sonnet-5-5": Price(input=2, output=10),
}
CACHE_READ, CACHE_WRITE = 0.1, 2.0  # of the price of a token in; written for an hour, which is the dearer of two
Client = AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex | AsyncAnthropicFoundry


class Claude:
    """One model at one endpoint. The SDK must not retry: it would sleep for as long as the server asks."""

    def __init__(
        self, name: str, key: str, base_url: str | None = None, price: Price | None = None, source: Source | None = None
    ) -> None:
        usual = ProviderSpec(kind="anthropic", api_key_env="ANTHROPIC_API_KEY", base_url=base_url)
        self._source = source or Source(provider_at(base_url), usual, key)
        self.name = name
        self.notice = ""
        self.is_llm = True
        self.provider = self._source.provider
        self.price = _with_cache(price or LIST_PRICES.get(name))
        self._able = self._source.spec.capabilities
        self._client = _CLIENTS[self._source.spec.kind](self._source)

    @classmethod
    def behind(cls, name: str, source: Source, price: Price | None = None) -> Self:
        """The model of this name at a provider of the team file."""
        return cls(name, source.key, source.spec.base_url, price, source)

    async def ask(self, ask: Ask) -> Reply:
        ask = ask if self._able.tools else replace(ask, tools=())
        request = request_of(ask, self.name, self._schema(ask), caches=self._able.cache)
        try:
            message = await self._message(request, ask.style.wrote if self._able.streaming else None)
        except anthropic.APIError as error:
            raise self._explained(error) from error
        except httpx2.HTTPError as error:  # of a stream that is cut: the package does not wrap it
            raise no_answer(self.name, str(self._client.base_url.host), error) from error
        except JSONDecodeError as error:
            raise ModelAway(f"{self.name}: the server did not answer with JSON") from error
        except (anthropic.AnthropicError, RuntimeError, ImportError) as error:  # a cloud's credentials are not there
            raise Misconfigured(f"{self.name}: provider {self.provider!r} cannot be asked: {error}") from error
        if not isinstance(message, Message):  # such as a proxy that answers 200 with HTML
            raise ModelAway(f"{self.name}: the server did not answer with JSON")
        fields = cast("dict[str, Any]", message.to_dict())
        if fields.get("stop_reason") is None:  # a stream may end early without an error
            raise ModelAway(f"{self.name}: the reply ended in the middle")
        usage = usage_of(fields.get("usage"))
        usd = self.price.usd_of(usage) if self.price else 0.0
        return reply_of(fields, usage.model_copy(update={"usd": usd}), self.name)

    async def close(self) -> None:
        await self._client.close()

    async def _message(self, request: Mapping[str, Any], wrote: Callable[[str], None] | None) -> object:
        # Untyped on purpose: tools and transcript are plain dicts, which the types of the SDK do not allow.
        messages = cast("Any", self._client.messages)
        if wrote is None:
            return await messages.create(**request)
        async with messages.stream(**request) as stream:
            async for text in stream.text_stream:
                wrote(text)
            return await stream.get_final_message()

    def _schema(self, ask: Ask) -> Mapping[str, Any] | None:
        """What the reply is bound to; where the server binds nothing, the prompt alone says it."""
        form, wanted = FORMS.get(type(ask.brief)), wanted_schema(ask.brief)
        if not self._able.structured_output:
            return None
        if form is not None:
            return anthropic.transform_schema(form)
        return None if wanted is None else closed(wanted)

    def _explained(self, error: anthropic.APIError) -> MusterError:
        if not isinstance(error, anthropic.APIStatusError):
            return no_answer(self.name, str(error.request.url.host), error)
        if error.status_code < 400:  # the stream had begun when the server gave up
            return ModelAway(f"{self.name}: the server broke off: {error.message}")
        where = variable_of(self._source.spec) or str(self._source.spec.api_key_file or "the credentials")
        if isinstance(error, anthropic.EnforcedSpendLimitReachedError):
            return not_paid(self.name, error.message)
        return refusal_of(self.name, error.status_code, error.message, error.response.headers, where)


def _with_cache(price: Price | None) -> Price | None:
    """The price with what Anthropic takes for what is cached, where the team file says nothing else."""
    if price is None:
        return None
    read = price.input * CACHE_READ if price.cache_read is None else price.cache_read
    written = price.input * CACHE_WRITE if price.cache_write is None else price.cache_write
    return price.model_copy(update={"cache_read": read, "cache_write": written})


def _own(source: Source) -> Client:
    return AsyncAnthropic(api_key=source.key or "none", base_url=source.spec.base_url, **_OPTIONS)


def _bedrock(source: Source) -> Client:
    spec = source.spec
    return AsyncAnthropicBedrock(aws_region=spec.region, api_key=source.key or None, base_url=spec.base_url, **_OPTIONS)


def _vertex(source: Source) -> Client:
    spec = source.spec
    return AsyncAnthropicVertex(
        region=spec.region or "",
        project_id=spec.project or "",
        access_token=source.key or None,
        base_url=spec.base_url,
        **_OPTIONS,
    )


def _foundry(source: Source) -> Client:
    spec = source.spec
    if spec.base_url is not None:
        return AsyncAnthropicFoundry(base_url=spec.base_url, api_key=source.key, **_OPTIONS)
    return AsyncAnthropicFoundry(resource=spec.resource, api_key=source.key, **_OPTIONS)


_OPTIONS: Mapping[str, Any] = {
    "timeout": CALL_TIMEOUT_SECONDS,
    "max_retries": 0,
    "middleware": [note_reply],
    "open_telemetry": False,  # every model call has one span, and it is ours
}
_CLIENTS: Mapping[str, Callable[[Source], Client]] = {
    "anthropic": _own,
    "bedrock": _bedrock,
    "vertex": _vertex,
    "foundry": _foundry,
}
