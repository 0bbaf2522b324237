"""What earlier versions wrote can still be read: each file in tests/golden, and one whole log."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from muster_protocol import headers as h
from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.headers import require_kind, require_sender
from muster_protocol.messages import LOG_KINDS, MESSAGES, Message, Request

GOLDEN = Path(__file__).parents[2] / "golden"
FILES = sorted(path for path in GOLDEN.glob("*.json") if path.name != "log.state.json")
KINDS: dict[str, type[Message]] = {message.kind: message for message in MESSAGES}


def read(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    golden = json.loads(path.read_text(encoding="utf-8"))
    return golden["headers"], golden["body"]


def understood(message: Message) -> dict[str, Any]:
    """All fields of a message, also those that were left out."""
    return json.loads(message.model_dump_json(by_alias=True))


def keeps(written: object, read: object) -> bool:
    """Whether all that was written is still there; a newer writer may add more."""
    if isinstance(written, dict) and isinstance(read, dict):
        mine, theirs = cast("dict[str, object]", written), cast("dict[str, object]", read)
        return all(name in theirs and keeps(value, theirs[name]) for name, value in mine.items())
    if isinstance(written, list) and isinstance(read, list):
        ours, others = cast("list[object]", written), cast("list[object]", read)
        return len(ours) == len(others) and all(keeps(a, b) for a, b in zip(ours, others, strict=True))
    return written == read


def test_every_kind_has_a_golden_file():
    assert {read(path)[0].get(h.KIND, Request.kind) for path in FILES} == set(KINDS)


@pytest.mark.parametrize("path", [path for path in FILES if read(path)[0]], ids=lambda path: path.stem)
def test_a_golden_message_is_read_and_written_as_it_was(path: Path):
    headers, body = read(path)
    require_sender(headers)
    kind = require_kind(headers, KINDS)

    message = kind.read(json.dumps(body).encode())

    assert keeps(body, understood(message))
    assert keeps(json.loads(message.body()), understood(message))
    assert kind.read(message.body()) == message
    assert headers[h.SCHEMA] == str(kind.schema_version)
    assert keeps(message.summary_headers(), headers)


@pytest.mark.parametrize("path", [path for path in FILES if not read(path)[0]], ids=lambda path: path.stem)
def test_a_golden_request_from_anywhere_is_read(path: Path):
    _, body = read(path)

    request = Request.read(json.dumps(body).encode())

    assert Request.read(request.body()) == request


def entry_of(line: str) -> Entry:
    golden = json.loads(line)
    headers = golden["headers"]
    body = require_kind(headers, LOG_KINDS).read(json.dumps(golden["body"]).encode())
    return Entry(golden["sequence"], golden["time"], require_sender(headers), int(headers.get(h.TERM, "0")), body)


def summary(state: RequestState) -> dict[str, object]:
    """What people and supervisors act upon."""
    assert state.answer is not None
    return {
        "owner": state.owner,
        "term": state.term,
        "last_sequence": state.last_sequence,
        "deadline": state.deadline,
        "tasks": [row.model_dump() for row in state.outcomes()],
        "descriptions": {task_id: task.description for task_id, task in state.tasks.items()},
        "usage": state.usage.model_dump(),
        "in_flight": state.in_flight,
        "open_tasks": state.open_tasks,
        "uncounted": state.uncounted,
        "answer": state.answer.text,
    }


def test_the_golden_log_folds_to_the_state_that_was_recorded():
    entries = [entry_of(line) for line in (GOLDEN / "log.jsonl").read_text(encoding="utf-8").splitlines()]

    recorded = json.loads((GOLDEN / "log.state.json").read_text(encoding="utf-8"))
    assert keeps(recorded, json.loads(json.dumps(summary(fold("7f3a", entries)))))
