"""What the built-in tools need of a team file: the keys that they read, and what has to lie behind them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from muster_agent.team.checking.mistakes import Mistake, roles_in, tools_in

Reason = Callable[[Mapping[Any, Any]], str]  # why a tool cannot be used with what a file says; empty: it can


def _needs_corpus(raw: Mapping[Any, Any]) -> str:
    return "" if raw.get("corpus") is not None else "the key 'corpus' with a folder"


def _needs_database(raw: Mapping[Any, Any]) -> str:
    is_there = raw.get("tables") is not None or raw.get("databases")
    return "" if is_there else "the key 'tables' with a folder, or 'databases' with files"


def _needs_files(raw: Mapping[Any, Any]) -> str:
    return "" if raw.get("files") is not None else "the key 'files' with a root"


def _needs_write(raw: Mapping[Any, Any]) -> str:
    return _needs_files(raw) or ("" if _section(raw, "files").get("write") else "files.write: true")


def _needs_hosts(raw: Mapping[Any, Any]) -> str:
    return "" if _section(raw, "web").get("hosts") else "the key 'web.hosts' with the hosts that may be read"


def _needs_search(raw: Mapping[Any, Any]) -> str:
    return "" if _section(raw, "web").get("search") else "the key 'web.search' with a provider, brave or tavily"


NEEDS: Mapping[str, Reason] = {
    "search_corpus": _needs_corpus,
    "query_database": _needs_database,
    "list_files": _needs_files,
    "read_file": _needs_files,
    "write_file": _needs_write,
    "scrape_page": _needs_hosts,
    "web_search": _needs_search,
}


def tools_have_what_they_need(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    for number, role in roles_in(raw):
        for place, tool in tools_in(role.get("tools")):
            if (needs := NEEDS.get(tool)) and (missing := needs(raw)):
                yield Mistake(("roles", number, "tools", place), f"{tool} needs {missing}; add it")


def folders_are_there(raw: Mapping[Any, Any], folder: Path) -> Iterator[Mistake]:
    places: Iterable[tuple[tuple[str, ...], object]] = (
        (("corpus",), raw.get("corpus")),
        (("tables",), raw.get("tables")),
        (("files", "root"), _section(raw, "files").get("root")),
    )
    for place, name in places:
        if isinstance(name, str) and not is_folder(folder / name):
            yield Mistake(place, f"{str(folder / name)!r} is not a folder; make it, or name one that is there")


def databases_are_there(raw: Mapping[Any, Any], folder: Path) -> Iterator[Mistake]:
    if raw.get("tables") is not None and "tables" in _section(raw, "databases"):
        yield Mistake(("databases", "tables"), "the folder of the key 'tables' has this name; choose another")
    for name, path in _section(raw, "databases").items():
        if isinstance(path, str) and not exists(folder / path):
            yield Mistake(
                ("databases", str(name)), f"{str(folder / path)!r} is not there; name a file or a folder that is"
            )


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except ValueError:  # a NUL in its name
        return False


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except ValueError:
        return False


def _section(raw: Mapping[Any, Any], key: str) -> Mapping[str, Any]:
    value: object = raw.get(key)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
