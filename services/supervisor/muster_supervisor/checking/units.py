"""What stands behind a number: a scale, a unit, and what it is counted by. Pure."""

from typing import NamedTuple

RATIO = "ratio"


class Unit(NamedTuple):
    """What a number measures, and how many of the smallest unit it is."""

    dimension: str
    factor: float


SCALES = {
    "k": 1e3, "thousand": 1e3, "mn": 1e6, "million": 1e6, "millions": 1e6, "bn": 1e9, "billion": 1e9,
    "billions": 1e9, "tn": 1e12, "trillion": 1e12,
}  # fmt: skip
SHORT_SCALES = {"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "b": 1e9, "B": 1e9}  # only in money, and where it is clear
CURRENCIES = {"$": "usd", "US$": "usd", "€": "eur", "£": "gbp", "¥": "jpy"}
NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
_MONTHS = """
january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct
|november nov|december dec
"""
MONTHS = {name: number for number, names in enumerate(_MONTHS.split("|"), 1) for name in names.split()}
_TABLE = {
    RATIO: {"%": 0.01, "percent": 0.01, "pct": 0.01, "‰": 0.001},
    "points": {"pp": 1},
    "time": {
        "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600,
        "hr": 3600, "hour": 3600, "day": 86400, "week": 604800, "month": 2629800, "year": 31557600,
    },
    "length": {
        "mm": 0.001, "cm": 0.01, "m": 1, "metre": 1, "meter": 1, "km": 1000, "kilometre": 1000, "kilometer": 1000,
        "ft": 0.3048, "foot": 0.3048, "feet": 0.3048, "inch": 0.0254, "inches": 0.0254, "mile": 1609.344,
        "mi": 1609.344,
    },
    "mass": {
        "mg": 1e-6, "g": 0.001, "gram": 0.001, "kg": 1, "kilogram": 1, "t": 1000, "ton": 1000, "tonne": 1000,
        "lb": 0.45359, "oz": 0.02835,
    },
    "data": {
        "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15, "kib": 1024, "mib": 1024**2, "gib": 1024**3,
        "tib": 1024**4, "byte": 1,
    },
    "celsius": {"°c": 1}, "fahrenheit": {"°f": 1}, "watt": {"w": 1, "kw": 1e3, "mw": 1e6, "gw": 1e9},
    "usd": {"dollar": 1, "usd": 1}, "eur": {"euro": 1, "eur": 1}, "gbp": {"gbp": 1}, "jpy": {"yen": 1, "jpy": 1},
    "chf": {"chf": 1, "franc": 1},
}  # fmt: skip
_UNITS = {name: Unit(dimension, factor) for dimension, names in _TABLE.items() for name, factor in names.items()}


def unit_of(word: str) -> Unit | None:
    """The unit that a word is, in the singular or the plural."""
    lower = word.lower()
    return _UNITS.get(lower) or (_UNITS.get(lower[:-1]) if len(lower) > 3 and lower.endswith("s") else None)
