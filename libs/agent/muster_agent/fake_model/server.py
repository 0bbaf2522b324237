"""The fake model: takes what the APIs of Anthropic and OpenAI take, and replies by a script, a recording, or an echo.

It is as strict as the real ones, so that what is wrong with a request is seen here. Any key will do.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, cycle
from pathlib import Path
from typing import cast

from muster_agent.fake_model import chat_api, messages_api
from muster_agent.fake_model.canned import CannedReply, Json
from muster_agent.fake_model.echo import echo
from muster_agent.fake_model.forward import forward
from muster_agent.fake_model.recording import Recorded, key_of, record
from muster_agent.fake_model.script import Entry, Fault, Script

_BUSY: Mapping[Fault, tuple[int, str]] = {
    "429": (429, "rate_limit_error"),
    "529": (529, "overloaded_error"),
    "500": (500, "api_error"),
}


@dataclass
class FakeModel:
    """What it replies, and which calls go wrong: of every so many the last one, by the faults in turn."""

    script: Script | None = None
    replay: Recorded | None = None
    record: Path | None = None
    upstream: str = ""
    faults: Sequence[Fault] = ()
    every: int = 1
    retry_after: float = 1.0
    say: Callable[[str], None] = lambda _: None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._strict = messages_api.MessagesServer([])
        self._faults = cycle(self.faults) if self.faults else None
        self._calls, self._ids = count(1), count(1)

    async def answer(self, path: str, headers: Mapping[str, str], body: Json) -> CannedReply:
        """The reply to a request, and a line about it."""
        is_chat = path == chat_api.PATH
        if wrong := self._wrong_with(path, headers, body):
            self.say(f"400  {path}  {wrong}")
            return _error(is_chat, 400, "invalid_request_error", wrong)
        number = next(self._calls)
        fault = next(self._faults) if self._faults is not None and number % self.every == 0 else None
        canned, said = await self._reply(path, headers, body, fault)
        self._strict.keep(canned)
        self.say(f"{canned.status}  {path}  {body.get('model')}  {said}")
        return canned

    async def _reply(
        self, path: str, headers: Mapping[str, str], body: Json, fault: Fault | None
    ) -> tuple[CannedReply, str]:
        is_chat = path == chat_api.PATH
        if self.upstream and fault is None:
            canned = await asyncio.to_thread(forward, f"{self.upstream}{path}", headers, body)
            if self.record is not None:
                record(self.record, key_of(path, body), canned)
            return canned, "forwarded"
        if self.replay is not None and fault is None:
            known = self.replay.next(key_of(path, body))
            missing = _error(is_chat, 400, "invalid_request_error", "this call was not recorded; record it again")
            return (missing, "not recorded") if known is None else (known, "replayed")
        entry = None if self.script is None else self.script.next(json.dumps(body, ensure_ascii=False))
        if entry is None:
            entry = Entry(text=echo(*_asked(body)) or "echo")
        fault = fault or entry.fault
        return self._faulty(self._said(entry, body, is_chat=is_chat), fault, is_chat=is_chat), fault or "ok"

    def _wrong_with(self, path: str, headers: Mapping[str, str], body: Json) -> str:
        if path == chat_api.PATH:
            return chat_api.wrong_with(path, body)
        if "messages" not in body:
            return "messages: Field required"
        return self._strict.wrong_with(path, headers, body)

    def _said(self, entry: Entry, body: Json, *, is_chat: bool) -> CannedReply:
        """The reply of an entry in the form of the API that was asked."""
        read = len(json.dumps(body)) // 4
        words = entry.text if entry.json_value is None else json.dumps(entry.json_value, ensure_ascii=False)
        written = max(1, len(words) // 4)
        name = f"call_{next(self._ids)}"
        if is_chat:
            calls = [chat_api.call(name, entry.tool, **entry.arguments)] if entry.tool else []
            return chat_api.completion(words or None, *calls, read=read, written=written)
        blocks = [messages_api.text(words)] if words else []
        if not entry.tool:
            return messages_api.message(*blocks, read=read, written=written)
        use = {"type": "tool_use", "id": name, "name": entry.tool, "input": entry.arguments}
        return messages_api.message(*blocks, use, stop="tool_use", read=read, written=written)

    def _faulty(self, canned: CannedReply, fault: Fault | None, *, is_chat: bool) -> CannedReply:
        match fault:
            case "429" | "529" | "500":
                status, kind = _BUSY[fault]
                error = _error(is_chat, status, kind, "the fake model is told to fail")
                wait = {"retry-after": f"{self.retry_after:g}"} if fault == "429" else {}
                return replace(error, headers=wait)
            case "hang":
                return replace(canned, is_held=True)
            case "cut":
                return replace(canned, is_cut=True)
            case "broken":
                return CannedReply('{"id": "msg_1", "content": [', headers={"content-type": "application/json"})
            case "truncate" | "refuse":
                return _stopped(canned, fault)
            case None:
                return canned


def _stopped(canned: CannedReply, fault: Fault) -> CannedReply:
    """The same reply, but it stops in the middle, or the model declines."""
    body = cast("Json", json.loads(json.dumps(canned.body)))
    if "choices" in body:
        body["choices"][0]["finish_reason"] = "length" if fault == "truncate" else "content_filter"
    else:
        body["stop_reason"] = "max_tokens" if fault == "truncate" else "refusal"
    return replace(canned, body=body)


def _error(is_chat: bool, status: int, kind: str, words: str) -> CannedReply:
    return chat_api.chat_refusal(status, words) if is_chat else messages_api.refusal(status, kind, words)


def _asked(body: Json) -> tuple[str, str, Mapping[str, object] | None]:
    """The system text, what was asked first, and the schema that binds the reply."""
    turns = cast("list[Json]", body["messages"])
    system = _text(body.get("system") or next((turn["content"] for turn in turns if turn["role"] == "system"), ""))
    asked = _text(next((turn["content"] for turn in turns if turn["role"] == "user"), ""))
    form = body.get("output_config", {}).get("format", {}) or body.get("response_format", {}).get("json_schema", {})
    return system, asked, form.get("schema")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[Json]", content) if isinstance(content, list) else []
    return "\n".join(str(block.get("text") or "") for block in blocks)
