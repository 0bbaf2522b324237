"""Says in plain words what the schema of a team file refuses, and the way out."""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from muster_agent.team.checking.mistakes import Mistake, Place
from muster_agent.team.schema import FunctionRole, ModelRole, Team
from muster_protocol.fields import nearest
from muster_protocol.messages.wrong import NAME, needed_for

_UNKNOWN = ("extra_forbidden", "invalid_key")
_EXAMPLES = {
    "team": "team: research",
    "roles": "roles: [{name: writer}]",
    "name": "name: writer",
    "use": "use: shop:stock_of",
    "root": "root: documents",
    "provider": "provider: brave",
    "input": "input: 2",
    "output": "output: 10",
}
_MORE = (  # what only a file has, or calls in another way than a message does
    ("string_", "text"),
    ("path_", "the name of a folder"),
    ("tool_", "the name of a tool, or a mapping with `use`"),
    ("model_", "a mapping with keys"),
    ("dict_", "a mapping with keys"),
)
_MAX_SHOWN = 60  # characters of a wrong value


def mistakes_of(errors: Iterable[ErrorDetails]) -> list[Mistake]:
    """Every error once: a key that is missing because it is misspelt is named by its wrong spelling alone."""
    found = [error for error in errors if error["type"] != "too_short" or not error["input"]]  # bad ones do not count
    misspelt = {
        (error["loc"][:-1], close)
        for error in found
        if error["type"] in _UNKNOWN
        for close in get_close_matches(str(error["loc"][-1]), _known(error["loc"]), n=1)
    }
    return [
        Mistake(_place(error["loc"]), _reason(error))
        for error in found
        if error["type"] != "missing" or (error["loc"][:-1], str(error["loc"][-1])) not in misspelt
    ]


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys that a person may write there."""
    return [key for key in model.model_fields if key not in ("folder", "fallbacks")]


def _place(loc: Place) -> Place:
    """Without the word that pydantic inserts for the kind of a role; fallbacks stand in the list under `model`."""
    if len(loc) <= 2 or loc[0] != "roles":
        return (*map(str, loc[:1]), *loc[1:])
    place = (*loc[:2], *loc[3:])
    return (*place[:2], "model", int(place[3]) + 1) if place[2:3] == ("fallbacks",) and len(place) > 3 else place


def _reason(error: ErrorDetails) -> str:
    kind, loc, value = error["type"], error["loc"], error["input"]
    context: Mapping[str, Any] = error.get("ctx", {})
    key = str(loc[-1]) if loc else ""
    if kind in _UNKNOWN:
        return _unknown_key(loc)
    if kind == "missing":
        example = _EXAMPLES.get(key, f"{key}: …")
        return f"is missing; add it, such as `{example}`"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        return _not_a_name(loc, value)
    if kind == "too_short":
        return "needs at least one"
    needed = next((words for start, words in _MORE if kind.startswith(start)), "") or needed_for(kind, context)
    return f"needs {needed}, not {shown(value)}{_way_out(kind, value)}" if needed else f"cannot be {shown(value)}"


def _way_out(kind: str, value: object) -> str:
    if value is None:
        return "; write one, or leave the key out"
    if kind.startswith(("tuple_", "list_")) and isinstance(value, str):
        return f"; write [{value[:_MAX_SHOWN]}]"
    if kind.startswith("string_") and not isinstance(value, list | dict):
        return "; put it in quotes"
    return ""


def _not_a_name(loc: Place, value: object) -> str:
    key = str(loc[-1])
    if "env" in loc:
        return f"{shown(value)} is no name of a variable; write one such as SHOP_TOKEN"
    if key == "run":
        return f"{shown(value)} names no function; write module:function, such as roles:count"
    return f"{shown(value)} cannot be a name: {NAME}"


def shown(value: object) -> str:
    """A value as a person wrote it, or what kind it is."""
    match value:
        case None | bool():
            return {None: "nothing", True: "true", False: "false"}[value]
        case float() if not math.isfinite(value):
            return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
        case dict():
            return "a mapping"
        case list() | tuple() | set():
            return "a list"
        case str():
            return repr(value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…")
        case _:
            return str(value)[:_MAX_SHOWN]


def _unknown_key(loc: Place) -> str:
    key = str(loc[-1])
    if loc[0] == "roles" and loc[2:3] == ("function",) and len(loc) == 4 and key in ModelRole.model_fields:
        return f"a role with `run` is a function and uses no model; leave out {key!r}, or `run`"
    return f"unknown key {key!r}{nearest(key, _known(loc))}"


def _known(loc: Place) -> list[str]:
    """The keys that there are where the last one of these stands."""
    models: list[type[BaseModel]] = [Team]
    for part in loc[:-1]:
        if part in ("model", "function"):
            models = [ModelRole if part == "model" else FunctionRole]
        elif any(part in model.model_fields for model in models):
            models = [
                each
                for model in models
                if part in model.model_fields
                for each in _models_in(model.model_fields[str(part)].annotation)
            ]
    known = [key for model in models for key in keys_of(model)]
    return [*known, "run"] if models == [ModelRole] else known


def _models_in(annotation: object) -> list[type[BaseModel]]:
    """The classes that a mapping may be at this key, inside of lists, unions and mappings by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
