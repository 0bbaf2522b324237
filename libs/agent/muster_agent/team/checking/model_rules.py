"""What must hold between the models that a team file names and its providers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from muster_agent.models.choose import check_model_name, provider_in
from muster_agent.team.checking.mistakes import Mistake, Place, roles_in, texts_in
from muster_agent.team.providers import BUILT_IN
from muster_protocol.fields import nearest


def providers_are_known(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    known = {**BUILT_IN, **_mapping(raw.get("providers"))}
    for place, model in _models_in(raw):
        provider = provider_in(model)
        if provider and provider not in known:
            yield Mistake(place, f"no provider {provider!r}{nearest(provider, known)}; add it under providers")


def models_can_use_tools(raw: Mapping[Any, Any], _folder: Path) -> Iterator[Mistake]:
    without = {
        name
        for name, provider in _mapping(raw.get("providers")).items()
        if _mapping(_mapping(provider).get("capabilities")).get("tools") is False
    }
    roles = dict(roles_in(raw))
    for place, model in _models_in(raw) if without else ():
        role = _mapping(roles.get(cast("int", place[1]))) if place[0] == "roles" else _mapping(None)
        if provider_in(model) in without and (role.get("tools") or role.get("spawns")):
            reason = (
                f"provider {provider_in(model)!r} has no tools (capabilities.tools: false), and the role needs them"
            )
            yield Mistake(place, f"{reason}; choose another model, or leave the tools out")


def _models_in(raw: Mapping[Any, Any]) -> Iterator[tuple[Place, str]]:
    """Every name of a model that can be one, with its place."""
    users = [(("supervisor",), _mapping(raw.get("supervisor")))]
    users += [(("roles", number), role) for number, role in roles_in(raw)]
    for place, user in users:
        for key in ("model", "other_model"):
            value: object = user.get(key)
            named = [((*place, key), value)] if isinstance(value, str) else []
            named += [((*place, key, number), name) for number, name in texts_in(value)]
            yield from ((where, name) for where, name in named if _is_name(name))


def _is_name(name: str) -> bool:
    try:
        check_model_name(name)
    except ValueError:
        return False  # which the schema says
    return True


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
