"""A plan in the editor of whoever sits at the terminal."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any, cast

from muster_protocol.errors import Invalid, Misconfigured
from muster_protocol.fields import check_spelling
from muster_protocol.plan import Plan

ROUTED = {"roles"}  # what the supervisor writes into a task by itself


def written(plan: Plan) -> str:
    """A plan as a person edits it."""
    document = plan.model_dump(mode="json", exclude_defaults=True, exclude={"tasks": {"__all__": ROUTED}})
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read(text: str) -> dict[str, Any]:
    """The plan that a person has written; raises Invalid."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise Invalid(f"is not JSON: {error}", "plan") from None
    if not isinstance(fields, dict):
        raise Invalid("is no JSON object", "plan")
    check_spelling(cast("dict[str, Any]", fields), Plan, "plan")
    return Plan.model_validate_json(text).model_dump(mode="json", exclude_defaults=True)


async def edit(path: Path, editor: str) -> bool:
    """Open the file in the editor, and wait for its end; whether something else stands in it then."""
    before = contents(path)
    try:
        process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(path))
    except (OSError, ValueError) as error:
        raise Misconfigured(f"cannot start the editor {editor!r}: {error}; EDITOR names another") from None
    if code := await process.wait():
        raise Misconfigured(f"the editor {editor!r} ended with {code}; the plan is as it was")
    return contents(path) != before


def contents(path: Path) -> str:
    return path.read_text(encoding="utf-8")
