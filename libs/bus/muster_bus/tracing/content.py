"""What of a prompt, an argument or an output may stand in a span: cut, and without the secrets that are known."""

import re
from collections.abc import Iterable

MAX_CONTENT = 4096  # characters
MAX_DESCRIPTION = 200
MIN_SECRET = 8  # a shorter value, such as `test`, would be replaced all over the text
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Redaction:
    """Replaces the values of secrets by their absence."""

    def __init__(self, secrets: Iterable[str]) -> None:
        longest_first = sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """The text without secrets, then cut: a secret at the edge must not be left in part."""
        clean = self._secrets.sub("[secret]", text) if self._secrets else text
        return clean if len(clean) <= MAX_CONTENT else f"{clean[:MAX_CONTENT]} [cut off after {MAX_CONTENT:,}]"


def one_line(text: str) -> str:
    """A task's description as it stands in a list: short, and without control characters."""
    short = text[: MAX_DESCRIPTION + 1]
    if not short.isprintable():
        short = _CONTROL.sub(" ", short)
    return short if len(text) <= MAX_DESCRIPTION else f"{short[: MAX_DESCRIPTION - 1]}…"
