"""The figures of a text: numbers with their units, dates and times of day, each with how exact it is. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from muster_supervisor.checking.units import (
    CURRENCIES,
    MONTHS,
    NUMBER_WORDS,
    RATIO,
    SCALES,
    SHORT_SCALES,
    Unit,
    unit_of,
)

MOST_ROUNDED = 0.05  # a rounded figure is at most so far from the exact one
YEAR, DATE, CLOCK = "year", "date", "clock"
_MONTH = "|".join(MONTHS)
_FIGURE = re.compile(
    rf"""(?P<iso>(?<![\w.-])\d{{4}}-\d\d-\d\d(?![\w-]))
    | (?P<day>\b\d{{1,2}})(?:st|nd|rd|th)?\.?\ (?:of\ )?(?P<month>{_MONTH})\b\.?,?(?:\ (?P<year>\d{{4}})\b)?
    | \b(?P<month_first>{_MONTH})\.?\ (?P<day_second>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\ ?%)
      (?:,?\ (?P<year_last>\d{{4}})\b)?
    | (?<![\w.:])(?P<hour>\d{{1,2}}):(?P<minute>[0-5]\d)(?![\w:])\ ?(?P<half>[ap]\.?m\b)?
    | \b(?P<word>{"|".join(NUMBER_WORDS)})\b
    | (?<![\w.\#/])(?<![^\W\d_]-)(?P<sign>[-−+](?=[\d$€£¥]))?(?P<money>US\$|[$€£¥])?\ ?
      (?P<digits>\d{{1,3}}(?:[,'’\u00a0\u202f]\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)*)(?P<short>[kKmMbB]\b)?(?!\d|-[^\W\d_]|[^\W\d_µ]{{0,2}}\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AFTER = re.compile(r"[  -]?(per cent\b|°[CF]\b|[%‰]|[^\W\d_]+)")
_RATE = re.compile(r"\s?(?:/\s?|per |an? |each |every )([^\W\d_]+)")
_BEFORE = 30  # characters before a figure that may say how exact it is
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|some|circa|ca\.?)|~|≈)\s*$", re.IGNORECASE
)
_AT_LEAST = re.compile(r"(?:\b(?:at least|more than|over|above|no less than|minimum of)|>=?|≥)\s*$", re.IGNORECASE)
_AT_MOST = re.compile(r"(?:\b(?:at most|up to|less than|fewer than|under|below|no more than)|<=?|≤)\s*$", re.IGNORECASE)
_TO = re.compile(r"\s*(?:–|—|-|to|and)\s*")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that stands in a text: from `low` to `high`, which are the same unless it is a range or a bound."""

    low: float
    high: float
    dimension: str  # empty: a bare number
    shown: str
    start: int
    end: int
    rate: str = ""  # per what
    role: str = ""  # `from`: what something was before
    half: float = 0.0  # of its last digit: how far the exact one may be from it
    other: float | None = None  # as it may be meant too: 1.000 is one or a thousand
    is_word: bool = False

    @property
    def value(self) -> float:
        """The middle; the one bound of a figure without the other."""
        if self.low == -inf or self.high == inf:
            return self.high if self.low == -inf else self.low
        return (self.low + self.high) / 2

    def agrees_with(self, other: "Figure") -> bool:
        """Whether both may be the same; a bare number may be meant as a percentage."""
        half = max(self.half, other.half)
        return any(_is_near(a, b, half) for a in self._readings(other) for b in other._readings(self))

    def _readings(self, other: "Figure") -> Iterator[tuple[float, float]]:
        yield self.low, self.high
        if self.other is not None:
            yield self.other, self.other
        if other.dimension == RATIO and not self.dimension:
            yield self.low / 100, self.high / 100


def _is_near(one: tuple[float, float], other: tuple[float, float], half: float) -> bool:
    """Whether two ranges meet, or one is the other rounded: 4.2 is 4.24, and 99.9 is not 99.95."""
    gap = max(one[0] - other[1], other[0] - one[1])
    return gap <= 1e-9 * max(1e-9, *(abs(end) for end in (*one, *other) if abs(end) != inf)) or gap < half * 0.999


def figures(text: str, most: int) -> list[Figure]:
    """The figures of a text, at most so many."""
    found: list[Figure] = []
    for match in _FIGURE.finditer(text):
        if len(found) == most:
            break
        if (figure := _read(match, text)) is not None:
            found.append(figure)
    return _with_ranges(found, text)


def _read(match: re.Match[str], text: str) -> Figure | None:
    start, end = match.span()
    groups = match.groupdict()
    if groups["iso"] or groups["month"] or groups["month_first"]:
        return _date(groups, start, end, match[0])
    if groups["hour"]:
        at = int(groups["hour"]) % 24 + (12 if (groups["half"] or "").lower().startswith("p") else 0)
        minutes = float(at * 60 + int(groups["minute"]))
        return Figure(minutes, minutes, CLOCK, match[0], start, end)
    if groups["word"]:
        return _measured(
            NUMBER_WORDS[groups["word"].lower()], 0.0, Figure(0, 0, "", "", start, end, is_word=True), text
        )
    return _number(groups, match, text)


def _number(groups: dict[str, str | None], match: re.Match[str], text: str) -> Figure | None:
    digits, start, end = groups["digits"] or "", match.start("digits"), match.end()
    start = match.start("money") if groups["money"] else start
    value, half, other = _value(digits)
    if value is None:
        return None
    currency = CURRENCIES.get((groups["money"] or "").upper(), "")
    if groups["short"]:
        scale = SHORT_SCALES.get(groups["short"], 1e6)
        if not currency and groups["short"] in "mb":  # 330m is a length
            scale, end = 1.0, end - 1
        value, half = value * scale, half * scale
    if len(digits) == 4 and digits.isdecimal() and 1500 <= value <= 2100 and not currency and not groups["short"]:
        after = _AFTER.match(text, end)
        if after is None or (unit_of(after[1]) is None and after[1].lower() not in SCALES):
            return Figure(value, value, YEAR, digits, start, end)
    if groups["sign"] in ("-", "−"):
        value = -value
    return _measured(value, half, Figure(0, 0, currency, "", start, end, other=other), text)


def _value(digits: str) -> tuple[float | None, float, float | None]:
    """The number, half of its last digit, and how else it may be read."""
    plain = re.sub(r"['’\u00a0\u202f]", "", digits)
    other: float | None = None
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(\.\d{3}){2,}(,\d+)?", plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"\d+,\d+", plain):
        plain = plain.replace(",", ".")
    elif not re.fullmatch(r"\d+(\.\d+)?", plain):
        return None, 0.0, None  # 1.2.3 is a version
    elif re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", plain):
        other = float(plain.replace(".", ""))
    if len(plain) > 25:
        return None, 0.0, None
    places = len(plain.partition(".")[2])
    return float(plain), 0.5 * 10.0**-places, other


def _measured(value: float, half: float, at: Figure, text: str) -> Figure:
    """A number with the scale, the unit and the rate that stand behind it, and how exact it says it is."""
    end, dimension, factor = at.end, at.dimension, 1.0
    after = _AFTER.match(text, end)
    if after is not None and (scale := SCALES.get(after[1].lower())) is not None:
        factor, end = scale, after.end()
        after = _AFTER.match(text, end)
    if after is not None and not dimension and (unit := _unit(after[1])) is not None:
        dimension, factor, end = unit.dimension, factor * unit.factor, after.end()
        if dimension == RATIO and text[end : end + 7].lower() == " points":
            dimension, end = "points", end + 7
    rate = _RATE.match(text, end)
    if rate is not None and (rate[0].lstrip()[0] in "/pe" or unit_of(rate[1]) is not None):
        end = rate.end()
    else:
        rate = None
    value, half = value * factor, min(half * factor, abs(value * factor) * MOST_ROUNDED)
    low, high = _bounds(value, text[max(0, at.start - _BEFORE) : at.start])
    per = (rate[1].lower().removesuffix("s") if rate is not None else "") if dimension != "points" else ""
    shown = text[at.start : end]
    return replace(at, low=low, high=high, half=half, dimension=dimension, shown=shown, end=end, rate=per)


def _unit(word: str) -> Unit | None:
    return Unit(RATIO, 0.01) if word.lower() == "per cent" else unit_of(word)


def _bounds(value: float, before: str) -> tuple[float, float]:
    if _AT_LEAST.search(before):
        return value, inf
    if _AT_MOST.search(before):
        return -inf, value
    about = abs(value) * MOST_ROUNDED if _ABOUT.search(before) else 0.0
    return value - about, value + about


def _date(groups: dict[str, str | None], start: int, end: int, shown: str) -> Figure:
    """A day as one number; without its year it is a day of any year."""
    if groups["iso"]:
        year, month, day = (int(part) for part in groups["iso"].split("-"))
    else:
        year = int(groups["year"] or groups["year_last"] or 0)
        month = MONTHS[(groups["month"] or groups["month_first"] or "").lower()]
        day = int(groups["day"] or groups["day_second"] or 0)
    value = float(year * 10_000 + month * 100 + day)
    return Figure(value, value, DATE, shown, start, end)


def _with_ranges(found: list[Figure], text: str) -> list[Figure]:
    """Two figures that are a range are one; of two that something went from and to, the first is of before."""
    kept: list[Figure] = []
    for figure in found:
        before = kept[-1] if kept else None
        if before is None or not _TO.fullmatch(text[before.end : figure.start]):
            kept.append(figure)
            continue
        link = text[before.end : figure.start].strip()
        lead = text[max(0, before.start - _BEFORE) : before.start].rstrip().lower()
        if lead.endswith("from") and link == "to":
            kept[-1] = replace(before, role="from", dimension=before.dimension or figure.dimension)
            kept.append(figure)
        elif (link == "and") != lead.endswith("between") or figure.dimension in (DATE, CLOCK, YEAR):
            kept.append(figure)
        else:
            kept[-1] = _range(before, figure, text)
    return kept


def _range(first: Figure, last: Figure, text: str) -> Figure:
    """2–3 million km is as much as 2 million to 3 million km."""
    factor = 1.0
    number = re.sub(r"[^\d.]", "", last.shown.replace(",", ""))
    if not first.dimension and number and float(number):
        factor = last.value / float(number)
    low, high = sorted((first.low * factor, last.high))
    return replace(last, low=low, high=high, start=first.start, shown=text[first.start : last.end])
