"""Figures and addresses of a composed text that no result has. Pure.

What the results say, what was asked, and sums and differences of figures in the results support a figure; so do their
roundings, and a percentage that was a fraction.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from muster_supervisor.checking.claims import Claim
from muster_supervisor.checking.figures import CLOCK, DATE, Figure, figures
from muster_supervisor.checking.units import SCALES
from muster_supervisor.checking.urls import same, urls

MAX_UNSUPPORTED = 20
MAX_CHECKED = 150  # figures of the text
MAX_READ = 1_000_000  # characters of the results and of what was asked; of more nothing is checked
MAX_FIGURES = 5_000  # of them that are read with scale and unit
MAX_SUMMED = 300  # different figures whose sums and differences count
MAX_SHOWN = 120  # characters
_NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f]\d+)*")
_LIST_MARK = re.compile(r"^[\s>#*-]*\d{1,3}[.):]\s", re.MULTILINE)


class Support:
    """What figures and addresses may be taken from."""

    def __init__(self, texts: Sequence[str], counts: Iterable[int], claims: Mapping[str, Sequence[Claim]]) -> None:
        self.is_complete = sum(map(len, texts)) <= MAX_READ
        values: set[float] = set(map(float, counts))
        summed: dict[float, None] = {}
        if self.is_complete:
            for text in texts:
                values.update(_plain_numbers(text))
                for figure in figures(text, MAX_FIGURES - len(summed)):
                    summed.update(dict.fromkeys(_values(figure)))
        self._summed = sorted(list(summed)[:MAX_SUMMED])
        self._values = sorted(values | summed.keys() | set(_totals(claims)))
        self._urls = {same(url) for text in texts for url in urls(text)} if self.is_complete else set[str]()

    def unsupported(self, text: str) -> tuple[tuple[str, ...], float]:
        """What stands in a text and in nothing that it was made of, and the part of its figures that is supported."""
        if not self.is_complete:
            return (), 1.0
        missing: dict[str, None] = {}
        checked = _checked(text)
        addresses = urls(text)
        bad = [figure for figure in checked if not self._has(figure)]
        for figure in bad:
            missing.setdefault(" ".join(figure.shown.split())[:MAX_SHOWN])
        wrong = [url for url in addresses if same(url) not in self._urls]
        missing.update(dict.fromkeys(url[:MAX_SHOWN] for url in wrong))
        total = len(checked) + len(addresses)
        share = 1 - (len(bad) + len(wrong)) / total if total else 1.0
        return tuple(missing)[:MAX_UNSUPPORTED], share

    def _has(self, figure: Figure) -> bool:
        return all(
            any(self._is_found(value, half) for value, half in _readings(figure, end)) for end in _values(figure)
        )

    def _is_found(self, value: float, half: float) -> bool:
        return self._is_near(self._values, value, half) or any(
            self._is_near(self._summed, value - part, half) or self._is_near(self._summed, value + part, half)
            for part in self._summed
        )

    @staticmethod
    def _is_near(values: Sequence[float], value: float, half: float) -> bool:
        slack = max(half, abs(value) * 1e-9)
        place = bisect_left(values, value - slack)
        return place < len(values) and values[place] <= value + slack


def _checked(text: str) -> list[Figure]:
    marks = {match.end() for match in _LIST_MARK.finditer(text)}
    return [
        figure
        for figure in figures(text, MAX_CHECKED)
        if not figure.is_word and not any(figure.start < end <= figure.end + 2 for end in marks)
    ]


def _values(figure: Figure) -> set[float]:
    """The ends of a figure, or its one value; a bound has one end, and about a number is that number."""
    if figure.low == -float("inf") or figure.high == float("inf"):
        return {abs(figure.value)}
    is_about = abs(figure.high - figure.low) <= abs(figure.value) * 0.101
    return {abs(figure.value)} if is_about else {abs(figure.low), abs(figure.high)}


def _readings(figure: Figure, value: float) -> Iterable[tuple[float, float]]:
    """A value as it may stand in a result: with its unit, or as the bare number, if no scale stands behind it."""
    yield value, figure.half if figure.dimension not in (DATE, CLOCK) else 0.0
    if figure.other is not None:
        yield figure.other, 0.0
    if not any(word in SCALES for word in figure.shown.lower().split()):
        for plain in _plain_numbers(figure.shown):
            yield plain, 0.0


def _plain_numbers(text: str) -> Iterable[float]:
    """Every number that stands in a text, with a comma read both ways."""
    for number in _NUMBER.findall(text):
        if len(number) <= 25:
            plain = re.sub(r"['’\u00a0\u202f]", "", number)
            for reading in {plain.replace(",", ""), plain.replace(".", "").replace(",", ".")}:
                if reading.count(".") <= 1:
                    yield float(reading)


def _totals(claims: Mapping[str, Sequence[Claim]]) -> Iterable[float]:
    """The sum over all tasks of what each says about one thing, for a total of more than two."""
    groups: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for task_id, found in claims.items():
        for claim in found:
            for word in claim.words:
                groups[claim.figure.dimension, word].setdefault(task_id, claim.figure.value)
    return [sum(group.values()) for group in groups.values() if len(group) > 2]
