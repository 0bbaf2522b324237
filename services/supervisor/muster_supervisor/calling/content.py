"""What a receiver is sent: the answer as the log has it, or as much of it as fits. Pure."""

import json
from typing import Any

from muster_protocol.messages import Answer

MAX_BYTES = 256 * 1024  # receivers often take a megabyte, some half of that
# Of an answer that is too large even so.
KEPT = ("request_id", "team", "status", "text", "reason", "seconds", "trace_id", "answered_at", "truncated", "read")


def content(answer: Answer, team: str, answered_at: float, most: int = MAX_BYTES) -> bytes:
    """JSON of at most so many bytes; what was left out is to be read elsewhere, and it says where."""
    fields: dict[str, Any] = json.loads(answer.body())
    whole = {"request_id": fields["request_id"], "team": team, **fields, "answered_at": answered_at}
    if len(body := _json(whole)) <= most:
        return body
    request_id = answer.request_id
    read = f"the rest: GET /v1/requests/{request_id} of the coordinator, or `muster wait {request_id} --json`"
    short = {**whole, "truncated": True, "read": read}
    short.pop("output", None)
    if len(body := _json(short)) <= most:
        return body
    shorter: dict[str, Any] = {name: short[name] for name in KEPT if name in short}
    for name in ("reason", "text"):
        over = len(_json(shorter)) - most
        if over > 0 and name in shorter:
            shorter[name] = _cut(shorter[name], over)
    return _json(shorter)


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _cut(text: str, over: int) -> str:
    """A text whose JSON is so many bytes shorter; a character takes six there at most."""
    written = json.dumps(text, ensure_ascii=False).encode()[1:-1]
    left = max(0, len(written) - over - len(" …".encode()))
    kept = text[: len(text) * left // max(1, len(written))]
    while len(json.dumps(kept, ensure_ascii=False).encode()) - 2 > left:
        kept = kept[: len(kept) * 9 // 10]
    return f"{kept} …"
