"""A local server that speaks the Messages API and refuses what the real one refuses."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

VERSION = "2026-10-21"
FORBIDDEN = ("temperature", "top_p", "top_k")
Json = dict[str, Any]


@dataclass(frozen=True)
class CannedReply:
    """One reply: a body with a status, a connection that is cut in the middle, or a wait for `released`."""

    body: Json | str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_cut: bool = False
    is_held: bool = False


def message(*content: Json, stop: str = "end_turn", read: int = 100, written: int = 20) -> CannedReply:
    """A reply of the model, made of the blocks below."""
    body: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
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

    def answer(self, path: str, headers: Mapping[str, str], body: Json) -> CannedReply:
        if headers.get("authorization") != f"Bearer {self.key}":
            return refusal(401, "authentication_error", "invalid bearer token")
        if wrong := self.wrong_with(path, headers, body):
            return refusal(400, "invalid_request_error", wrong)
        if not self.script:
            return refusal(400, "invalid_request_error", "the script of this MessagesServer has no more replies")
        self.requests.append(body)
        self.times.append(time.monotonic())
        canned = self.script.pop(0)
        if isinstance(canned.body, dict):
            self.sent += canned.body.get("content", [])
        return canned

    def wrong_with(self, path: str, headers: Mapping[str, str], body: Json) -> str:
        checks = (
            (path != "/v1/messages", f"no such path {path}"),
            (headers.get("anthropic-version") != VERSION, "anthropic-version"),
            (any(name in body for name in FORBIDDEN), "sampling parameters are not supported"),
            (not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1, "max_tokens"),
            (body.get("tool_choice", {}).get("type") in ("any", "tool"), "forced tool use is not supported"),
            (not _is_strict(body), "output_config.format.schema: additionalProperties must be false"),
        )
        return next((reason for is_wrong, reason in checks if is_wrong), "") or self._wrong_turns(body["messages"])

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

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        canned = server.answer(head[0].split()[1], headers, json.loads(body))
        if canned.is_held:
            await server.released.wait()
        with suppress(ConnectionError):  # nobody waits any more
            writer.write(_encoded(canned))
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        try:
            yield server
        finally:
            server.released.set()


def _encoded(canned: CannedReply) -> bytes:
    """The reply as it goes over the wire, or its first half."""
    is_page = isinstance(canned.body, str)
    body = canned.body.encode() if isinstance(canned.body, str) else json.dumps(canned.body).encode()
    headers = {
        "content-type": "text/html" if is_page else "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **canned.headers,
    }
    head = f"HTTP/1.1 {canned.status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
    return head.encode() + (body[: len(body) // 2] if canned.is_cut else body)
