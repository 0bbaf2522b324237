"""A JSON object that a person names on the command line: a file, or - for standard input."""

import json
from pathlib import Path
from typing import Any, cast

from muster_cli.view.console import read_standard_input
from muster_protocol.errors import Invalid


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


def read_plan(name: str) -> dict[str, Any]:
    """A plan, also as `muster plan --json` prints it: with what was found and estimated beside it."""
    fields = read_json(name, "--plan")
    if "plan" not in fields or "tasks" in fields:
        return fields
    if not isinstance(fields["plan"], dict):
        raise Invalid(f"{name} has no plan: none could be made", "--plan")
    return cast("dict[str, Any]", fields["plan"])
