"""Finds figures of different results that are about the same thing and cannot both be right. Pure, without a model.

It compares what is written, not what is true: two figures are compared only if their words, names, units, periods and
rates fit together, and differ only beyond rounding, ranges and percentages that are written as fractions.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from muster_supervisor.checking.claims import Claim
from muster_supervisor.checking.figures import CLOCK, DATE, YEAR
from muster_supervisor.checking.units import RATIO
from muster_supervisor.checking.words import tell_apart

MAX_FOUND = 20
MAX_COMPARED = 30_000  # pairs of claims
MAX_SHARED = 40  # claims with one word: a word that all have says nothing
_LEAST_SHARED = 0.5  # of the words of the shorter claim


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two results that cannot both be right."""

    first: Claim
    second: Claim

    def __str__(self) -> str:
        return (
            f"{self.first.figure.shown} against {self.second.figure.shown}: "
            f"{self.first.task_id} says “{self.first.quote}”, {self.second.task_id} says “{self.second.quote}”"
        )


def contradictions(
    found: Mapping[str, Sequence[Claim]], is_apart: Callable[[Claim, Claim], bool] = lambda _, __: False
) -> list[Contradiction]:
    """The contradictions between the claims of different tasks; those that are apart are not compared."""
    contradicting: dict[tuple[str, str, str], Contradiction] = {}
    compared: set[tuple[int, int]] = set()
    every = [claim for claims in found.values() for claim in claims]
    by_word: dict[str, list[int]] = defaultdict(list)
    for place, claim in enumerate(every):
        for word in claim.words:
            by_word[word].append(place)
    for word in sorted(by_word, key=lambda word: (len(by_word[word]), word)):
        for one, other in combinations(by_word[word][:MAX_SHARED], 2):
            first, second = every[one], every[other]
            if first.task_id == second.task_id or (one, other) in compared:
                continue
            if len(compared) == MAX_COMPARED or len(contradicting) == MAX_FOUND:
                return list(contradicting.values())
            compared.add((one, other))
            if is_contradicting(first, second) and not is_apart(first, second):
                # One for two tasks and one thing: the same figure often stands in an output several times.
                contradicting.setdefault(
                    (first.task_id, second.task_id, _thing(first, second)), Contradiction(first, second)
                )
    return [one for one in contradicting.values() if not _is_repeated(one, found)]


def is_contradicting(first: Claim, second: Claim) -> bool:
    """Whether two claims are about the same thing and cannot both be right."""
    a, b = first.figure, second.figure
    if not _is_measured_alike(first, second) or not _is_about_the_same(first, second):
        return False
    if first.direction * second.direction < 0:
        return True
    return not a.agrees_with(b)


def _is_measured_alike(first: Claim, second: Claim) -> bool:
    a, b = first.figure, second.figure
    if a.rate != b.rate or a.role != b.role:
        return False
    if a.dimension == b.dimension:
        return bool(a.dimension) or not (first.counted and second.counted) or bool(first.counted & second.counted)
    bare, other = (a, b) if not a.dimension else (b, a)
    if bare.dimension:
        return False
    counted = first.counted if bare is a else second.counted
    if counted or other.dimension in (YEAR, DATE, CLOCK, "time"):
        return False
    return 0 <= bare.value <= 1 if other.dimension == RATIO else True


def _is_about_the_same(first: Claim, second: Claim) -> bool:
    if _are_apart(first.periods, second.periods) or tell_apart(first.answers, second.answers):
        return False
    shared = first.words & second.words
    only_first, only_second = first.words - shared, second.words - shared
    if not shared or (only_first & first.names and only_second & second.names):
        return False
    for one, other in ((first, second), (second, first)):
        if one.counted and not one.counted & other.words and not other.figure.dimension:
            return False
    if only_first and only_second:
        return len(shared) >= 2 and len(shared) >= len(shared | only_first | only_second) * _LEAST_SHARED
    return len(shared) >= min(len(first.words), len(second.words)) * _LEAST_SHARED


def _are_apart(these: frozenset[str], those: frozenset[str]) -> bool:
    """Whether both name a year, or both a month or a quarter, and not the same."""
    for is_year in (True, False):
        mine = {period for period in these if period.isdecimal() is is_year}
        others = {period for period in those if period.isdecimal() is is_year}
        if mine and others and not mine & others:
            return True
    return False


def _thing(first: Claim, second: Claim) -> str:
    return f"{' '.join(sorted(first.words & second.words))} {first.figure.dimension}"


def _is_repeated(found: Contradiction, every: Mapping[str, Sequence[Claim]]) -> bool:
    """Whether either task says elsewhere, of the same thing, what the other says: a series, not a contradiction."""
    pairs = ((found.first, found.second), (found.second, found.first))
    return any(
        _is_measured_alike(claim, other)
        and claim.words & one.words == claim.words | one.words
        and claim.figure.agrees_with(other.figure)
        for one, other in pairs
        for claim in every[one.task_id]
        if claim is not one
    )
