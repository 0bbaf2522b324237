"""A reply of the server as it goes over the wire: whole, as a stream, cut in the middle, or held back."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

Json = dict[str, Any]
PART = 8  # characters of a text in one event of a stream


@dataclass(frozen=True)
class CannedReply:
    """One reply: a body with a status, a connection that is cut in the middle, or a wait for `released`."""

    body: Json | str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    is_cut: bool = False
    is_held: bool = False


def encoded(canned: CannedReply, *, is_stream: bool) -> bytes:
    """The reply as it goes over the wire, or its first half."""
    kind = "text/html" if isinstance(canned.body, str) else "application/json"
    if isinstance(canned.body, str):
        body = canned.body.encode()
    elif is_stream and canned.status == 200:
        kind, body = "text/event-stream", "".join(_events(canned.body)).encode()
    else:
        body = json.dumps(canned.body).encode()
    headers = {"content-type": kind, "content-length": str(len(body)), "connection": "close", **canned.headers}
    head = f"HTTP/1.1 {canned.status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
    return head.encode() + (body[: len(body) // 2] if canned.is_cut else body)


def _events(body: Json) -> Iterator[str]:
    if body.get("object") == "chat.completion":
        yield from (f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(body))
        yield "data: [DONE]\n\n"
    else:
        yield from (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _message_events(body))


def _message_events(body: Json) -> Iterator[Json]:
    """The events of the Messages API for a whole message."""
    usage = cast("Json", body.get("usage") or {})
    yield {
        "type": "message_start",
        "message": {**body, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}},
    }
    for index, block in enumerate(cast("list[Json]", body.get("content") or [])):
        empty, deltas = _deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": body.get("stop_reason"), "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage.get("output_tokens", 0)}}
    yield {"type": "message_stop"}


def _deltas(block: Json) -> tuple[Json, list[Json]]:
    match block["type"]:
        case "text":
            parts = [{"type": "text_delta", "text": part} for part in _parts(block["text"])]
            return {"type": "text", "text": ""}, parts
        case "thinking":
            parts = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*parts, signed]
        case "tool_use":
            written = json.dumps(block["input"])
            parts = [{"type": "input_json_delta", "partial_json": part} for part in _parts(written)]
            return {**block, "input": {}}, parts
        case _:
            return block, []


def _chunks(body: Json) -> Iterator[Json]:
    """The chunks of the chat API for a whole completion."""
    choice = cast("Json", body["choices"][0])
    message = cast("Json", choice["message"])
    same = {"id": body["id"], "object": "chat.completion.chunk", "created": body["created"], "model": body["model"]}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**same, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for part in _parts(str(message.get("content") or "")):
        yield chunk({"content": part})
    for index, call in enumerate(cast("list[Json]", message.get("tool_calls") or [])):
        function = cast("Json", call["function"])
        begun = {"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}}
        yield chunk({"tool_calls": [{"index": index, **begun}]})
        for part in _parts(str(function["arguments"])):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, str(choice["finish_reason"]))
    yield {**same, "choices": [], "usage": body.get("usage")}


def _parts(text: str) -> list[str]:
    return [text[at : at + PART] for at in range(0, len(text), PART)]
