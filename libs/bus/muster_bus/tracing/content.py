"""What of a prompt, an argument or an output may stand in a span: cut, and without the secrets that are known."""

import re

from muster_bus.redact import KNOWN

MAX_CONTENT = 4096  # characters
MAX_DESCRIPTION = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def content(text: str) -> str:
    """The text without secrets, then cut: a secret at the edge must not be left in part."""
    clean = KNOWN(text)
    return clean if len(clean) <= MAX_CONTENT else f"{clean[:MAX_CONTENT]} [cut off after {MAX_CONTENT:,}]"


def one_line(text: str) -> str:
    """A task's description as it stands in a list: short, and without control characters."""
    short = text[: MAX_DESCRIPTION + 1]
    if not short.isprintable():
        short = _CONTROL.sub(" ", short)
    return short if len(text) <= MAX_DESCRIPTION else f"{short[: MAX_DESCRIPTION - 1]}…"
