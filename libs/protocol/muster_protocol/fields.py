"""Fields that no reader knows: ignored on the wire, but an error where a person asks."""

import difflib
from collections.abc import Iterable
from typing import Any, cast

from muster_protocol.errors import Invalid
from muster_protocol.messages import Budget, Request
from muster_protocol.plan import AtLeast, Frozen, Plan, Retry, TaskSpec
from muster_protocol.unfold import MapOver, Reduce, Template

ALSO_READ = {"worker_type"}  # as `tag`
INSIDE: dict[str, type[Frozen]] = {
    "plan": Plan,
    "map": MapOver,
    "budget": Budget,
    "tasks": TaskSpec,
    "template": Template,
    "reduce": Reduce,
    "gather": AtLeast,
    "retry": Retry,
}


def check_spelling(fields: object, of: type[Frozen] = Request, where: str = "") -> None:
    """Raise at a field that does not exist; what is no object at all is left to the model."""
    known, plain = _names_of(of)
    if isinstance(fields, list):
        for place, one in enumerate(cast("list[Any]", fields)):
            # A list in a list is none of ours: the model says so, however deep it goes.
            if isinstance(one, dict) and not cast("dict[str, Any]", one).keys() <= plain:
                check_spelling(cast("dict[str, Any]", one), of, f"{where}.{place}")
    if not isinstance(fields, dict):
        return
    for name, value in cast("dict[str, Any]", fields).items():
        if name not in known:
            raise Invalid(f"no such field{nearest(name, of.model_fields)}", f"{where}.{name}".removeprefix("."))
        if name in INSIDE:
            check_spelling(value, INSIDE[name], f"{where}.{name}".removeprefix("."))


def _names_of(model: type[Frozen]) -> tuple[frozenset[str], frozenset[str]]:
    """The fields that may be written, and those of them with no fields of their own: a plan has thousands of tasks."""
    known = frozenset(model.model_fields) | ALSO_READ
    return known, known - INSIDE.keys()


def check_supported(request: Request) -> None:
    """Raise at a field that this version does not act upon: saying so beats ignoring it."""
    asked = {
        "conversation": request.conversation is not None,
        "replay_of": request.replay_of is not None,
        "budget.depth": request.budget.depth is not None,
    }
    for field, is_set in asked.items():
        if is_set:
            raise Invalid("this version does not support it; leave it out", field)


def nearest(word: str, known: Iterable[str]) -> str:
    """A half sentence that helps: the nearest known word, and all of them."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1)
    return (f"; did you mean {close[0]!r}?" if close else ";") + f" known: {', '.join(words)}"
