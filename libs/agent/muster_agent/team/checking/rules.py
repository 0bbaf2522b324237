"""What must hold between the parts of a team file: names differ, and folders that tools need are there."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from muster_agent.team.checking.mistakes import Mistake, roles_in, texts_in
from muster_agent.team.checking.model_rules import models_can_use_tools, providers_are_known
from muster_agent.team.checking.tool_needs import databases_are_there, folders_are_there, tools_have_what_they_need

Rule = Callable[
    [Mapping[Any, Any], Path], Iterable[Mistake]
]  # what a file says and its folder; it may be full of mistakes


def different_names(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for number, role in roles_in(raw):
        name: object = role.get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            reason = f"a second role named {name!r}: the first is roles.{first[name]}; rename one of them"
            yield Mistake(("roles", number, "name"), reason)
        first.setdefault(name, number)


def workers_are_no_tags(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    tags = {tag for _, role in roles_in(raw) for _, tag in texts_in(role.get("tags"))}
    tags |= {name for _, role in roles_in(raw) if isinstance(name := role.get("name"), str)}
    for place, name in texts_in(raw.get("workers")):
        if name in tags:
            reason = f"{name!r} is a tag of a role too; give the worker another name"
            yield Mistake(("workers", place), reason)


RULES: tuple[Rule, ...] = (
    different_names,
    tools_have_what_they_need,
    folders_are_there,
    databases_are_there,
    workers_are_no_tags,
    providers_are_known,
    models_can_use_tools,
)
