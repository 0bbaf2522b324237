"""What a receiver's reply to a callback means, and when one that was not taken is tried again. Pure."""

import hashlib
import math
from typing import NamedTuple

FIRST_SECONDS = 1.0  # after the first try; doubles with each further one
MOST_SECONDS = 900.0  # also of what a receiver asks for
LATER = frozenset({408, 425, 429})  # of the replies that blame the request: these do not


class Delivered(NamedTuple):
    """The receiver has it."""


class TryLater(NamedTuple):
    """It may have it later; `seconds` is what it asked for at least."""

    reason: str
    seconds: float = 0.0


class GaveUp(NamedTuple):
    """It will never have it."""

    reason: str


Verdict = Delivered | TryLater | GaveUp


def verdict(status: int, asked_seconds: float | None) -> Verdict:
    """What the status of a reply means, which may ask for some seconds of peace."""
    if 200 <= status < 300:
        return Delivered()
    if status in LATER or status >= 500:
        return TryLater(f"the receiver says {status}", min(MOST_SECONDS, asked_seconds or 0.0))
    if 300 <= status < 400:
        return GaveUp(f"the receiver says {status}: it redirects, which is not followed; ask with the final address")
    return GaveUp(f"the receiver says {status}")


def next_try(request_id: str, tries: int) -> float:
    """Seconds from a try to the next one; what failed together is spread by a hash of the request."""
    spread = 0.75 + hashlib.sha256(f"{request_id}.{tries}".encode()).digest()[0] / 255 / 2
    doubled = FIRST_SECONDS * math.pow(2.0, min(30, max(0, tries - 1)))
    return min(MOST_SECONDS, doubled * spread)
