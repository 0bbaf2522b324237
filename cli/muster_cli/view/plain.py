"""Foreign text on a terminal: nothing in it that a terminal obeys, on one line or on several."""

from unicodedata import category

UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, what turns the direction of writing, halves of characters
_HARMLESS = "\n\t\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}"  # words and emoji are made with these


def clean(text: str) -> str:
    """The text with its lines and tabs: no escape sequence, no reversed writing, nothing that is no character."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n")
    return "".join(UNPRINTABLE if category(c) in _OBEYED and c not in _HARMLESS else c for c in lines)


def plain(text: str, limit: int = 300) -> str:
    """The same on one line, with single spaces, no longer than it may be."""
    return line(" ".join(text[: 4 * limit].split()), limit)  # what is cut away need not be looked at


def line(text: str, limit: int) -> str:
    """The same on one line that keeps its spaces, because its parts stand below those of other lines."""
    shown = clean(text[: limit + 1]).replace("\n", " ").replace("\t", " ")
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def duration(seconds: float) -> str:
    """A duration as people read it: `520 ms`, `2.41 s`, `3 m 05 s`, `2 h 03 m`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"


def ago(seconds: float) -> str:
    """How long ago something was, as far as anybody cares: `3 s ago`, `5 m ago`, `2 h ago`, `4 d ago`."""
    for unit, of, limit in (("s", 1, 60), ("m", 60, 3600), ("h", 3600, 86400)):
        if seconds < limit:
            return f"{max(0.0, seconds) // of:.0f} {unit} ago"
    return f"{seconds // 86400:.0f} d ago"


def offset(seconds: float, of: float) -> str:
    """A moment within `of` seconds, with the same unit for all of them, so that a column of them can be read."""
    if of < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if of < 100 else f"{seconds:.0f} s" if of < 600 else duration(seconds)
