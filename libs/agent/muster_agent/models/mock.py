"""`kind: mock`: a model that replies from a list in the team file, or from a file beside it, for tests and trials."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import yaml

from muster_agent.models.port import FREE, Ask, Reply, ToolCall
from muster_agent.models.scripted import Scripted
from muster_agent.team.providers import ProviderSpec
from muster_protocol.errors import Misconfigured

_FORM = "a list of texts, or of mappings {tool, arguments}"


def mock(name: str, spec: ProviderSpec) -> Scripted:
    """The replies in their order, and again from the first after the last."""
    replies = _in_file(spec) if spec.replies_file is not None else spec.replies
    turns, ids = _for_ever(replies), count(1)

    def reply(_: Ask) -> Reply:
        return _reply(next(turns), next(ids))

    return Scripted(reply, FREE, name, "the mock model replies from a list; it is not an LLM")


def _for_ever(replies: tuple[Any, ...]) -> Iterator[Any]:
    while True:
        yield from replies


def _reply(said: object, number: int) -> Reply:
    if isinstance(said, str):
        return Reply(said)
    fields = cast("dict[str, Any]", said)
    if "tool" not in fields:
        return Reply(json.dumps(fields, ensure_ascii=False))
    return Reply("", (ToolCall(f"mock_{number}", str(fields["tool"]), fields.get("arguments") or {}),), stop="tools")


def _in_file(spec: ProviderSpec) -> tuple[Any, ...]:
    """The replies of a YAML or JSON file."""
    path = spec.replies_file
    try:
        replies: object = yaml.safe_load(path.read_text(encoding="utf-8")) if path else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or "it is not YAML"
        raise Misconfigured(f"replies_file: cannot read {path}: {why}") from None
    listed = cast("list[object]", replies) if isinstance(replies, list) else []
    if not listed or not all(isinstance(one, str | dict) for one in listed):
        raise Misconfigured(f"replies_file: {path} needs {_FORM}")
    return tuple(listed)
