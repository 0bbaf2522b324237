"""What is allowed in a team file and seldom meant: two roles with the same tool, and roles with very many tools."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from muster_agent.team.checking.mistakes import Mistake, placed, roles_in, tools_in
from muster_agent.team.source import read_source

MANY_TOOLS = 15  # with more of them models begin to choose the wrong one; see docs/when-one-agent-is-enough.md


def warnings_in(file: Path) -> list[Mistake]:
    """The warnings of a team file, in the order of the file; none if it cannot be read."""
    try:
        source = read_source(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return []
    found = [*shared_tools(source.raw), *many_tools(source.raw)]
    return sorted((placed(each, source.raw, source.lines) for each in found), key=lambda each: each.line or 0)


def shared_tools(raw: Mapping[Any, Any]) -> Iterator[Mistake]:
    """Each tool that a role before has too."""
    first: dict[str, str] = {}
    for number, role in roles_in(raw):
        name = str(role.get("name", number))
        for place, tool in tools_in(role.get("tools")):
            owner = first.setdefault(tool, name)
            if owner != name:
                reason = (
                    f"{tool} is a tool of {owner!r} too; where roles can do the same, the planner cannot tell them "
                    "apart: leave it to one of them, or make them one role"
                )
                yield Mistake(("roles", number, "tools", place), reason)


def many_tools(raw: Mapping[Any, Any]) -> Iterator[Mistake]:
    for number, role in roles_in(raw):
        tools: object = role.get("tools")
        count = len(cast("list[object]", tools)) if isinstance(tools, list) else 0
        if count > MANY_TOOLS:
            reason = f"{count} tools; with more than {MANY_TOOLS} a model often takes the wrong one: split the role"
            yield Mistake(("roles", number, "tools"), reason)
