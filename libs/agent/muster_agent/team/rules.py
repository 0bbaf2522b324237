"""What must hold between the parts of a team file: names differ, and folders that tools need are there."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from muster_agent.team.mistakes import Mistake, roles_in, texts_in, tools_in
from muster_agent.team.model_rules import models_can_use_tools, providers_are_known

Rule = Callable[
    [Mapping[Any, Any], Path], Iterable[Mistake]
]  # what a file says and its folder; it may be full of mistakes
NEEDS = {"search_corpus": "corpus", "query_database": "tables"}


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


def tools_have_their_folder(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    for number, role in roles_in(raw):
        for place, tool in tools_in(role.get("tools")):
            key = NEEDS.get(tool)
            if key and raw.get(key) is None:
                yield Mistake(("roles", number, "tools", place), f"{tool} needs the key {key!r} with a folder; add it")


def folders_are_there(raw: Mapping[Any, Any], folder: Path) -> Iterator[Mistake]:
    for key in NEEDS.values():
        name: object = raw.get(key)
        if isinstance(name, str) and not is_folder(folder / name):
            yield Mistake((key,), f"{str(folder / name)!r} is not a folder; make it, or name one that is there")


def workers_are_no_tags(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    tags = {tag for _, role in roles_in(raw) for _, tag in texts_in(role.get("tags"))}
    tags |= {name for _, role in roles_in(raw) if isinstance(name := role.get("name"), str)}
    for place, name in texts_in(raw.get("workers")):
        if name in tags:
            reason = f"{name!r} is a tag of a role too; give the worker another name"
            yield Mistake(("workers", place), reason)


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except ValueError:  # a NUL in its name
        return False


RULES: tuple[Rule, ...] = (
    different_names,
    tools_have_their_folder,
    folders_are_there,
    workers_are_no_tags,
    providers_are_known,
    models_can_use_tools,
)
