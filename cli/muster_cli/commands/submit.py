"""`muster submit`: send a plan, a map or a whole request from a JSON file, and follow it as `muster ask` does."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, cast

from muster_bus.process.settings import Settings
from muster_cli.commands.ask import send_and_follow
from muster_cli.view.console import read_standard_input
from muster_protocol.errors import Invalid
from muster_protocol.fields import check_spelling


async def submit(given: Namespace, settings: Settings) -> int:
    if given.plan is not None:
        fields = {"plan": read_json(given.plan, "--plan")}
    elif given.map is not None:
        fields = {"map": read_json(given.map, "--map")}
    else:
        fields = read_json(given.request, "--request")
    check_spelling(fields)
    return await send_and_follow(given, settings, fields)


def read_json(name: str, option: str) -> dict[str, Any]:
    """A JSON object from a file or from standard input."""
    try:
        text = read_standard_input() if name == "-" else Path(name).read_text(encoding="utf-8")
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
