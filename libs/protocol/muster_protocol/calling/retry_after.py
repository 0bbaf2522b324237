"""How long the header `Retry-After` of an HTTP reply asks to wait: it gives seconds or a date. Pure."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
LONGEST = 40  # characters of what can be a date; a date's parser need not see what somebody else thought of


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
    """A date as HTTP writes it, in seconds since 1970; one that names no zone is in UTC."""
    if not text or len(text) > LONGEST:
        return None
    try:
        found: datetime = parsedate_to_datetime(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
