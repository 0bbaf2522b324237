"""`muster tool try`: one tool is called once, and what a model would be told of it and by it is shown."""

import contextlib
import json
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_agent.team.schema import BUILT_IN_TOOLS, ModelRole, Team, card_of, is_import_path
from muster_agent.team.tool_spec import ToolUse
from muster_agent.tools.load import tools_for
from muster_agent.tools.tool import Tool, error_text
from muster_bus.process.command import Exit
from muster_bus.redact import KNOWN
from muster_cli.trying.arguments import json_object
from muster_cli.trying.shown import heading
from muster_cli.view.console import say, say_json
from muster_cli.view.plain import duration
from muster_protocol.errors import Invalid, cause_of, error_class_of
from muster_protocol.fields import nearest

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


async def tool(given: Namespace, settings: "Settings") -> int:
    arguments = json_object(given.arguments, "JSON")
    with contextlib.redirect_stdout(sys.stderr):  # code that is imported, or runs, may print
        team = load_team(find_team_file(given.team_file, settings.team_file, Path.cwd()))
        tried = _tool(team, given.name, {**settings.keys, **settings.model_env})
        began = time.monotonic()
        output, error, error_class, code = await _call(tried, arguments)
    seconds = time.monotonic() - began
    spec = tried.spec
    if given.json:
        about = {"tool": spec.name, "description": spec.description, "schema": spec.schema, "arguments": arguments}
        done = {"output": output, "error": error, "error_class": error_class, "seconds": round(seconds, 4)}
        say_json({**about, **done})
        return code
    for line in (heading(spec.name), spec.description, json.dumps(spec.schema, ensure_ascii=False)):
        say(line)
    ended = "output" if error is None else f"failed ({error_class})"
    say(heading(f"{ended} · {duration(seconds)}"))
    say(output if error is None else error)
    return code


async def _call(tool: Tool, arguments: dict[str, Any]) -> tuple[str, str | None, str | None, Exit]:
    """What a model would get: the output, or an error as text, with its class; and the exit code."""
    try:
        return await tool.call(arguments, key=f"try-{token_hex(8)}"), None, None, Exit.DONE
    except ValidationError as error:
        return "", error_text(error), "input", Exit.USAGE
    except Exception as raised:  # noqa: BLE001 - a tool may raise anything, and a model gets the error as text
        cause = cause_of(raised)
        return "", KNOWN(error_text(cause)), error_class_of(cause), Exit.FAILED


def _tool(team: Team, name: str, keys: Mapping[str, str]) -> Tool:
    """The tool of this name: one of a role, a built-in one, or any function by its import path."""
    roles = [role for role in team.roles if isinstance(role, ModelRole)]
    of_roles = {called: tool for role in roles for called, tool in zip(card_of(role).tools, role.tools, strict=True)}
    of_all = ToolUse(use=name) if name in BUILT_IN_TOOLS or is_import_path(name) else None
    if (found := of_roles.get(name) or of_all) is None:
        known = nearest(name, {*of_roles, *BUILT_IN_TOOLS})
        raise Invalid(f"no tool {name!r} in team {team.team!r}{known}, or module:function", "NAME")
    (tool,) = tools_for(ModelRole(name="try", tools=(found,)), team, keys=keys).values()
    return tool
