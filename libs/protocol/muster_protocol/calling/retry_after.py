"""How long the header `Retry-After` of an HTTP reply asks to wait: it gives seconds or a date. Pure."""

import re

SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
CLOCK = r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)"
# The three forms that HTTP has had; all of them are in UTC.
DATES = (
    re.compile(r"[A-Z][a-z]{2}, (?P<day>[0-9]{2}) (?P<month>[A-Z][a-z]{2}) (?P<year>[0-9]{4}) " + CLOCK + " GMT"),
    re.compile(r"[A-Z][a-z]{5,8}, (?P<day>[0-9]{2})-(?P<month>[A-Z][a-z]{2})-(?P<year>[0-9]{2}) " + CLOCK + " GMT"),
    re.compile(r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) (?P<day>[ 0-3][0-9]) " + CLOCK + r" (?P<year>[0-9]{4})"),
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY = 86_400


def asked_seconds(retry_after: str | None, date: str | None, now: float) -> float | None:
    """The seconds that are asked for; None if that cannot be read. `date` is the header of that name.

    A server that gives a date counts from its own clock, which its reply shows; `now` is ours, for one that does not.
    """
    text = (retry_after or "").strip()
    if SECONDS.fullmatch(text):
        return float(text)
    until = _moment(text)
    if until is None:
        return None
    asked_at = _moment((date or "").strip())
    return max(0.0, until - (now if asked_at is None else asked_at))


def _moment(text: str) -> float | None:
    """A date as HTTP writes it, in seconds since 1970."""
    found = next((match for form in DATES if (match := form.fullmatch(text))), None)
    if found is None or found["month"] not in MONTHS or not 1 <= int(found["day"]) <= 31:
        return None
    year = int(found["year"]) + (2000 if len(found["year"]) == 2 else 0)
    days = _days(year, MONTHS.index(found["month"]) + 1, int(found["day"]))
    return days * DAY + int(found["hour"]) * 3600.0 + int(found["minute"]) * 60 + int(found["second"])


def _days(year: int, month: int, day: int) -> int:
    """From 1 January 1970 to a day of the Gregorian calendar. A year begins in March, so that the leap day is last."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1 - 719_468
