"""Reads how Letta bounds the steps of an agent, `max_chaining_steps` and `chaining: false`, as `max_turns`."""

from typing import Any, cast

WITHOUT_CHAINING = 2  # one reply that may call tools, and one that says what came of them


def turns_for_steps(raw: object) -> object:
    """The keys of a role with `max_turns` in the place of Letta's two."""
    if not isinstance(raw, dict):
        return raw
    given = dict(cast("dict[str, Any]", raw))
    steps, chaining = given.pop("max_chaining_steps", None), given.pop("chaining", None)
    if steps is not None and "max_turns" in given:
        raise ValueError("max_chaining_steps and max_turns are the same; write max_turns")
    if chaining not in (None, True, False):
        raise ValueError("chaining is true or false")
    if steps is not None:
        given["max_turns"] = steps
    if chaining is False:
        if "max_turns" in given:
            raise ValueError(f"chaining: false is max_turns: {WITHOUT_CHAINING}; write max_turns alone")
        given["max_turns"] = WITHOUT_CHAINING
    return given
