"""Checks what roles load when a worker starts: the functions behind roles and tools, and the tables."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from muster_agent.functions import load_function, load_handler
from muster_agent.team.checking.mistakes import Mistake, Place, roles_in, tools_in
from muster_agent.team.checking.rules import Rule
from muster_agent.team.checking.tool_needs import exists
from muster_agent.team.schema import ADD_TASK, CANNOT_DO, is_import_path
from muster_agent.tools.database.databases import TABLES, read_database
from muster_agent.tools.tool import KEYED, Effect, tool_of
from muster_protocol.errors import Invalid


def role_code(only: Collection[str] | None = None) -> Rule:
    """A rule for `load_team` that imports the code of these roles, or of all: for whoever will run it."""

    def rule(raw: Mapping[Any, Any], folder: Path) -> Iterator[Mistake]:
        chosen = [(number, role) for number, role in roles_in(raw) if only is None or role.get("name") in only]
        for number, role in chosen:
            yield from _handler(("roles", number, "run"), role.get("run"), folder)
            yield from _tools(("roles", number, "tools"), role, folder)
        if any("query_database" in dict(tools_in(role.get("tools"))).values() for _, role in chosen):
            yield from _databases(raw, folder)

    return rule


def _handler(place: Place, path: object, folder: Path) -> Iterator[Mistake]:
    if isinstance(path, str) and is_import_path(path):
        try:
            load_handler(path, folder)
        except Invalid as error:
            yield Mistake(place, str(error))


def _tools(place: Place, role: Mapping[Any, Any], folder: Path) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for number, tool in tools_in(role.get("tools")):
        name = tool
        if is_import_path(tool):
            try:
                name = tool_of(load_function(tool, folder), effect=_effect(role, number)).spec.name
            except Invalid as error:
                yield Mistake((*place, number), str(error))
                continue
        if name == ADD_TASK and role.get("spawns"):
            yield Mistake((*place, number), f"{name!r} is the tool that comes with spawns: true; rename this one")
        if name == CANNOT_DO != tool:  # of one that is named so the schema says it
            yield Mistake((*place, number), f"{name!r} is a tool of every role that uses a model; rename this one")
        if name in first:
            reason = f"a second tool named {name!r}: the first is tools.{first[name]}; leave one out"
            yield Mistake((*place, number), reason)
        first.setdefault(name, number)


def _effect(role: Mapping[Any, Any], number: int) -> Effect | None:
    """The effect that a role says of a tool, if it is written rightly: the schema says what is wrong."""
    tool: object = cast("Sequence[object]", role["tools"])[number]
    return KEYED if isinstance(tool, dict) and cast("Mapping[str, object]", tool).get("effect") == KEYED else None


def _databases(raw: Mapping[Any, Any], folder: Path) -> Iterator[Mistake]:
    named: object = raw.get("databases")
    others = cast("Mapping[object, object]", named).items() if isinstance(named, dict) else ()
    places: list[tuple[Place, object]] = [((TABLES,), raw.get(TABLES))]
    places += [(("databases", str(name)), path) for name, path in others]
    for place, path in places:
        if not isinstance(path, str) or not exists(folder / path):
            continue  # another rule says so
        try:
            read_database(folder / path)
        except (Invalid, OSError) as error:
            yield Mistake(place, str(error))
