"""Real calls in a file, for tests that always see the same: each reply stands under what its request asks.

Two runs never send quite the same: a prompt has a random boundary, and tells times. Both are left out of the key. No
header is written, so no key of a provider is.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muster_agent.fake_model.canned import CannedReply, Json
from muster_protocol.errors import Misconfigured

_MARK = re.compile(r"-[0-9a-f]{12}\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ASKED = ("model", "system", "messages", "tools", "response_format", "output_config")


def key_of(path: str, body: Mapping[str, Any]) -> str:
    """What a request asks, but for its boundary and its numbers."""
    asked = json.dumps([path, *(body.get(name) for name in _ASKED)], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(_NUMBER.sub("0", _MARK.sub("-", asked)).encode()).hexdigest()[:32]


class Recorded:
    """The replies of a file; those under one key come in their order, and the last of them again and again."""

    def __init__(self, path: Path) -> None:
        self._replies: dict[str, list[CannedReply]] = defaultdict(list)
        for line in _lines(path):
            canned = CannedReply(line["body"], int(line.get("status", 200)), line.get("headers", {}))
            self._replies[str(line["key"])].append(canned)

    def next(self, key: str) -> CannedReply | None:
        """None: no such call was recorded."""
        replies = self._replies.get(key, [])
        return (replies.pop(0) if len(replies) > 1 else replies[0]) if replies else None


def record(path: Path, key: str, canned: CannedReply) -> None:
    """Add a reply to the file."""
    line: Json = {"key": key, "status": canned.status, "body": canned.body}
    if "retry-after" in canned.headers:
        line["headers"] = {"retry-after": canned.headers["retry-after"]}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _lines(path: Path) -> Iterator[Json]:
    try:
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            found = json.loads(line)
            _ = found["key"], found["body"]
            yield found
    except OSError as error:
        raise Misconfigured(f"cannot read {path}: {error.strerror}; --record writes such a file") from None
    except (ValueError, KeyError, TypeError):
        raise Misconfigured(f"{path} is no recording; --record writes such a file") from None
