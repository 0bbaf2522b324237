"""`muster ask` and `muster submit`: send a request, show what happens to it, print its answer."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, cast

from muster_cli.exits import Exit
from muster_protocol.errors import Invalid


async def ask(given: Namespace) -> int:
    text = _standard_input() if given.text == "-" else given.text
    return await _ask(given, {"text": text})


async def submit(given: Namespace) -> int:
    if given.plan is not None:
        fields = {"plan": _read_json(given.plan, "--plan")}
    elif given.map is not None:
        fields = {"map": _read_json(given.map, "--map")}
    else:
        fields = _read_json(given.request, "--request")
    from muster_protocol.fields import check_spelling

    check_spelling(fields)
    return await _ask(given, fields)


async def _ask(given: Namespace, fields: dict[str, Any]) -> int:
    from muster_cli.connect import connect
    from muster_cli.traces import traced
    from muster_cli.view.follow import follow
    from muster_protocol.messages import Request

    if given.deadline is not None:
        fields["deadline_seconds"] = given.deadline
    if given.budget_tokens is not None:
        budget = fields.get("budget", {})
        if isinstance(budget, dict):  # anything else is complained of with all the rest
            fields["budget"] = {**cast("dict[str, Any]", budget), "tokens": given.budget_tokens}
    request = Request.read(json.dumps(fields).encode())
    async with await connect(given.team) as client, traced(client):
        request_id = await client.send(request)
        if given.detach:
            print(json.dumps({"request_id": request_id}) if given.json else request_id)
            return Exit.DONE
        return await follow(client, request_id, given.json)


def _read_json(name: str, option: str) -> dict[str, Any]:
    """A JSON object from a file or from standard input."""
    try:
        text = _standard_input() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise Invalid(f"cannot read {name}: {reason}", option) from None
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise Invalid(f"{name} is not JSON: {error}", option) from None
    if not isinstance(fields, dict):
        raise Invalid(f"{name} holds {type(fields).__name__}, not a JSON object", option)
    return cast("dict[str, Any]", fields)


def _standard_input() -> str:
    from muster_cli.view.console import interruptible

    with interruptible():
        return sys.stdin.read()
