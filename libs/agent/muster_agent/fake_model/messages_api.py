"""The Messages API: its replies, and a server that answers from a script and refuses what the real one refuses."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from muster_agent.fake_model.canned import CannedReply, Json
from muster_agent.fake_model.http import serving

VERSION = "2026-10-21"
PATH = "/v1/messages"
FORBIDDEN = ("temperature", "top_p", "top_k")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
MAX_CACHE_MARKS = 4
MAX_SENT = 10_000  # blocks that are known when they come back
THINKS_ALWAYS = ("claude-opus-5-5", "claude-fable-5")


def message(*content: Json, stop: str = "end_turn", read: int = 100, written: int = 20, **usage: int) -> CannedReply:
    """A reply of the model, made of the blocks below."""
    body: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written, **usage},
    }
    return CannedReply(body)


def refusal(status: int, kind: str, text: str, **headers: str) -> CannedReply:
    """An error of the server; header names are written with underscores."""
    body: Json = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}
    return CannedReply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def thinking(words: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": f"signed:{words}"}


def tool_use(call_id: str, name: str, **arguments: object) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


@dataclass
class MessagesServer:
    """Answers from a script; keeps every request that it accepted."""

    script: list[CannedReply]
    key: str = "sk-test"
    url: str = ""
    requests: list[Json] = field(default_factory=list[Json])
    times: list[float] = field(default_factory=list[float])  # when each came
    sent: list[Json] = field(default_factory=list[Json])
    released: asyncio.Event = field(default_factory=asyncio.Event)  # lets replies go that are held

    @property
    def environment(self) -> dict[str, str]:
        """What makes a service of a running team ask this server: `start("worker", "w1", env=server.environment)`."""
        return {"ANTHROPIC_API_KEY": self.key, "ANTHROPIC_BASE_URL": self.url}

    async def answer(self, path: str, headers: Mapping[str, str], body: Json) -> CannedReply:
        if headers.get("authorization") != f"Bearer {self.key}":
            return refusal(401, "authentication_error", "invalid bearer token")
        if wrong := self.wrong_with(path, headers, body):
            return refusal(400, "invalid_request_error", wrong)
        if not self.script:
            return refusal(400, "invalid_request_error", "the script of this MessagesServer has no more replies")
        self.requests.append(body)
        self.times.append(time.monotonic())
        canned = self.script.pop(0)
        self.keep(canned)
        return canned

    def keep(self, canned: CannedReply) -> None:
        """Know the blocks of a reply, which may come back."""
        if isinstance(canned.body, dict):
            self.sent += canned.body.get("content", [])
            del self.sent[:-MAX_SENT]

    def wrong_with(self, path: str, headers: Mapping[str, str], body: Json) -> str:
        thinks_not = body.get("thinking", {}).get("type") == "disabled"
        checks = (
            (path != PATH, f"no such path {path}"),
            (headers.get("anthropic-version") != VERSION, "anthropic-version"),
            (any(name in body for name in FORBIDDEN), "sampling parameters are not supported"),
            (not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1, "max_tokens"),
            (body.get("tool_choice", {}).get("type") in ("any", "tool"), "forced tool use is not supported"),
            (body.get("output_config", {}).get("effort", "low") not in EFFORTS, "output_config.effort"),
            (thinks_not and str(body.get("model")).startswith(THINKS_ALWAYS), "thinking cannot be disabled"),
            (not _is_strict(body), "output_config.format.schema: additionalProperties must be false"),
        )
        wrong = next((reason for is_wrong, reason in checks if is_wrong), "")
        return wrong or _wrong_marks(body) or self._wrong_turns(body["messages"])

    def _wrong_turns(self, turns: Sequence[Json]) -> str:
        if [turn["role"] for turn in turns] != [("user", "assistant")[n % 2] for n in range(len(turns))]:
            return "roles must alternate and begin with user"
        for turn, following in zip(turns, [*turns[1:], None], strict=True):
            if turn["role"] != "assistant":
                continue
            if any(block not in self.sent for block in turn["content"]):
                return "an assistant block was changed or made up"
            asked = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
            answers = [b.get("tool_use_id") for b in (following or {"content": []})["content"]]
            if asked != answers[: len(asked)] or any(answers[len(asked) :]):  # text may follow, but not come first
                return f"tool_use ids {asked} were answered by {answers}"
        return ""


def _wrong_marks(body: Json) -> str:
    """What is wrong with the marks of the cache: too many, or one for an hour after one for minutes."""
    marks = [mark.get("ttl", "5m") for mark in _marks([body.get("tools"), body.get("system"), body.get("messages")])]
    if len(marks) > MAX_CACHE_MARKS:
        return f"a maximum of {MAX_CACHE_MARKS} blocks with cache_control, found {len(marks)}"
    return "" if marks == sorted(marks) else "a ttl='1h' cache_control block must not come after a ttl='5m' one"


def _marks(node: object) -> Iterator[Json]:
    if isinstance(node, list):
        for one in cast("list[object]", node):
            yield from _marks(one)
    elif isinstance(node, dict):
        fields = cast("Json", node)
        if "cache_control" in fields:
            yield fields["cache_control"]
        yield from _marks(fields.get("content"))


def _is_strict(body: Json) -> bool:
    """Every object of an output schema must be closed."""

    def closed(node: object) -> bool:
        if not isinstance(node, dict):
            return True
        fields = cast("Json", node)
        is_open = fields.get("type") == "object" and fields.get("additionalProperties") is not False
        return not is_open and all(closed(value) for value in fields.values())

    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return schema is None or closed(schema)


@asynccontextmanager
async def running_messages_server(*script: CannedReply, key: str = "sk-test") -> AsyncGenerator[MessagesServer]:
    """A server that gives these replies, in this order."""
    server = MessagesServer(list(script), key)
    async with serving(server.answer, server.released) as url:
        server.url = url
        yield server
