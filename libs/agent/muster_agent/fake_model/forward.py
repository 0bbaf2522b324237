"""Asks the real server in the place of whoever asked the fake one, with the caller's own key."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import cast

from muster_agent.fake_model.canned import CannedReply, Json

SECONDS = 300.0
_PASSED = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "content-type")


def forward(url: str, headers: Mapping[str, str], body: Json) -> CannedReply:
    """The real reply, whole: what was to be streamed is streamed by the fake server. Blocks its thread."""
    whole = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    passed = {name: value for name, value in headers.items() if name in _PASSED}
    request = urllib.request.Request(url, json.dumps(whole).encode(), passed, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return CannedReply(_json(answer.read()), answer.status)
    except urllib.error.HTTPError as error:
        wait = {"retry-after": value} if (value := error.headers.get("retry-after")) else {}
        return CannedReply(_json(error.read()), error.code, wait)
    except (OSError, ValueError) as error:
        text = f"no answer from {url}: {getattr(error, 'reason', error)}"
        return CannedReply({"type": "error", "error": {"type": "api_error", "message": text}}, 502)


def _json(text: bytes) -> Json | str:
    try:
        found: object = json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
    return cast("Json", found) if isinstance(found, dict) else text.decode(errors="replace")
