"""Who fits: the kind of work that a role stands for, and which role knows most about a text."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from muster_agent.models.offline.subjects import END_WORDS, LEAD_WORDS
from muster_protocol.workers.role_card import RoleCard

STAGES = (  # by stems; the order is the order of work
    ("gather", ("research", "search", "find", "gather", "collect", "retriev", "fetch", "extract", "read", "scout")),
    ("analyse", ("analy", "comput", "calculat", "compar", "evaluat", "assess", "quant", "data", "code", "build")),
    ("write", ("writ", "draft", "report", "summar", "compos", "format", "document", "edit", "present")),
    ("check", ("review", "check", "verif", "critic", "proof", "audit", "test")),
)
VERBS = {"gather": "Research", "analyse": "Analyse", "write": "Write up", "check": "Check", "other": "Work on"}
NAMED = 2.0  # a word in the name or a tag of a role says twice as much as one in its description
KEY = 6  # letters by which words are compared: `documentation` and `documents` are the same
_WORD = re.compile(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class Stage:
    """A role, and the kind of work that its name, tags or description stand for."""

    role: RoleCard
    kind: str


def stages_of(roles: Sequence[RoleCard]) -> list[Stage]:
    """The roles in the order of their kinds of work; within a kind in the order of the team file."""
    order = {kind: place for place, (kind, _) in enumerate(STAGES)} | {"other": 1}
    return sorted((Stage(role, _kind(role)) for role in roles), key=lambda stage: order[stage.kind])


def _kind(role: RoleCard) -> str:
    """The kind by the first known word in the name, else in the tags, else in the description."""
    kinds = (kind_of(words) for words in (role.name, " ".join(role.tags), role.description))
    return next((kind for kind in kinds if kind), "other")


def kind_of(words: str) -> str:
    """The kind of work that the first known word stands for; empty if there is none."""
    places = [
        (match.start(), kind)
        for kind, stems in STAGES
        if (match := re.search(rf"(?:^|[^a-z])(?:{'|'.join(stems)})", words.lower()))
    ]
    return min(places)[1] if places else ""


def fits(text: str, roles: Sequence[RoleCard]) -> dict[str, float]:
    """How much each role has to do with a text, by its words; those that all roles have say nothing."""
    asked = _keys(text)
    known = {role.name: _weights(role) for role in roles}
    having = Counter(key for weights in known.values() for key in weights)
    telling = {key for key in asked if having[key] < len(known) or len(known) == 1}
    return {
        name: sum(weight / having[key] for key, weight in weights.items() if key in telling)
        for name, weights in known.items()
    }


def best(text: str, stages: Sequence[Stage]) -> Stage:
    """The role for one step of work: by its words, and by the kind of work that the step begins with."""
    scores, kind = fits(text, [stage.role for stage in stages]), kind_of(text)
    return max(stages, key=lambda stage: scores[stage.role.name] + (stage.kind == kind))


def _weights(role: RoleCard) -> dict[str, float]:
    seen = " ".join((role.description, role.corpus, role.tables, *role.tools, *role.inputs))
    return {**dict.fromkeys(_keys(seen), 1.0), **dict.fromkeys(_keys(f"{role.name} {' '.join(role.tags)}"), NAMED)}


def _keys(text: str) -> set[str]:
    return {_key(word) for word in _WORD.findall(text.lower())} - _EMPTY


def _key(word: str) -> str:
    return (word.rstrip("s") or word)[:KEY]


_GLUE = "all an and any be but can has have not of one or other such than this was will"
_EMPTY = frozenset(_key(word) for word in LEAD_WORDS | END_WORDS | set(_GLUE.split()))
