"""Numbers from the environment, or one line that names the variable."""

import math
import os

from muster_protocol.errors import Invalid


def seconds(name: str, default: float) -> float:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise Invalid(f"{text!r} is not a number of seconds", name)
    return found


def port(name: str) -> int | None:
    """A port, or None when the variable is not set."""
    text = os.environ.get(name)
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise Invalid(f"{text!r} is not a port from 1 to 65535", name)
    return int(text)
