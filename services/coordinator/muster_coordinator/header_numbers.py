"""Numbers as headers carry them. Pure."""

import math

_SMALL = {str(small): small for small in range(100)}  # attempts, deliveries and costs are mostly these


def number(text: str) -> int:
    """A header's number; whatever is none counts nothing."""
    small = _SMALL.get(text)
    if small is not None:
        return small
    return int(text) if len(text) < 19 and text.isascii() and text.isdigit() else 0


def real(text: str) -> float:
    """A header's finite number; whatever is none counts nothing."""
    if text == "0":
        return 0.0
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
