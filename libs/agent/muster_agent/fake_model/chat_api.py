"""OpenAI's chat API: its replies, and a server that answers from a script and refuses what strict servers refuse."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from muster_agent.fake_model.canned import CannedReply, Json
from muster_agent.fake_model.http import serving

PATH = "/v1/chat/completions"
LIMITS = ("max_tokens", "max_completion_tokens")
ROLES = ("system", "user", "assistant", "tool")


def completion(
    words: str | None = None, *calls: Json, finish: str = "", read: int = 100, written: int = 20
) -> CannedReply:
    """A reply of the model: a text, or the calls below."""
    said: Json = {"role": "assistant", "content": words, **({"tool_calls": list(calls)} if calls else {})}
    reason = finish or ("tool_calls" if calls else "stop")
    body: Json = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [{"index": 0, "message": said, "finish_reason": reason}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }
    return CannedReply(body)


def call(call_id: str, name: str, **arguments: object) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def chat_refusal(status: int, text: str, code: str | None = None, **headers: str) -> CannedReply:
    """An error of the server; header names are written with underscores."""
    body: Json = {"error": {"message": text, "type": "error", "param": None, "code": code}}
    return CannedReply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class ChatServer:
    """Answers from a script; keeps every request that it accepted. Without a key it takes any."""

    script: list[CannedReply]
    key: str = ""
    url: str = ""
    requests: list[Json] = field(default_factory=list[Json])
    released: asyncio.Event = field(default_factory=asyncio.Event)  # lets replies go that are held

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def answer(self, path: str, headers: Mapping[str, str], body: Json) -> CannedReply:
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            return chat_refusal(401, "Incorrect API key provided", "invalid_api_key")
        if wrong := wrong_with(path, body):
            return chat_refusal(400, wrong)
        if not self.script:
            return chat_refusal(400, "the script of this ChatServer has no more replies")
        self.requests.append(body)
        return self.script.pop(0)


def wrong_with(path: str, body: Json) -> str:
    """Why the request is refused; empty if it is not."""
    turns = cast("Sequence[Json]", body.get("messages") or ())
    limits = [name for name in LIMITS if name in body]
    choice = body.get("tool_choice", "auto")
    checks = (
        (path != PATH, f"no such path {path}"),
        (not isinstance(body.get("model"), str), "model is required"),
        (len(limits) != 1 or not isinstance(body[limits[0]], int) or body[limits[0]] < 1, f"one of {LIMITS}"),
        (not turns, "messages is empty"),
        (any(turn.get("role") not in ROLES for turn in turns), f"a role is none of {ROLES}"),
        (any(turn.get("role") == "system" for turn in turns[1:]), "system must come first"),
        (not body.get("tools", True), "tools is an empty list"),
        ("tools" not in body and ("tool_choice" in body or "parallel_tool_calls" in body), "there are no tools"),
        (choice not in ("auto", "none"), "tool_choice"),
        (body.get("stream") is not True and "stream_options" in body, "stream_options without stream"),
        (not _is_closed_if_strict(body), "response_format: a strict schema must be closed, with all required"),
    )
    return next((reason for is_wrong, reason in checks if is_wrong), "") or _wrong_turns(turns)


def _wrong_turns(turns: Sequence[Json]) -> str:
    """Each call of the assistant is answered at once and once; what it wrote are texts and arguments that are JSON."""
    asked: list[str] = []
    for turn in turns:
        if turn["role"] == "tool":
            if turn.get("tool_call_id") not in asked:
                return f"an output for {turn.get('tool_call_id')!r}, which was not called"
            asked.remove(turn["tool_call_id"])
        elif asked:
            return f"the calls {asked} have no output"
        for made in turn.get("tool_calls") or ():
            try:
                json.loads(made["function"]["arguments"])
            except ValueError:
                return "the arguments of a call are not JSON"
            asked.append(made["id"])
        if turn["role"] != "assistant" and not isinstance(turn.get("content"), str):
            return "content must be a text"
    return f"the calls {asked} have no output" if asked else ""


def _is_closed_if_strict(body: Json) -> bool:
    form = body.get("response_format", {}).get("json_schema", {})

    def closed(node: object) -> bool:
        if not isinstance(node, dict):
            return True
        fields = cast("Json", node)
        if fields.get("type") == "object":
            is_all = sorted(fields.get("required", [])) == sorted(fields.get("properties", {}))
            if fields.get("additionalProperties") is not False or not is_all:
                return False
        return all(closed(value) for value in fields.values())

    return not form.get("strict") or closed(form.get("schema"))


@asynccontextmanager
async def running_chat_server(*script: CannedReply, key: str = "") -> AsyncGenerator[ChatServer]:
    """A server that gives these replies, in this order."""
    server = ChatServer(list(script), key)
    async with serving(server.answer, server.released) as url:
        server.url = url
        yield server
