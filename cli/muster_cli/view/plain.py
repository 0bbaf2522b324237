"""Foreign text on a terminal: one line, nothing that a terminal obeys, no longer than it may be."""

UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


def plain(text: str, limit: int = 300) -> str:
    """One line of printable characters: no escape sequence, no reversed writing, no markup reaches the terminal."""
    line = " ".join(text[: 4 * limit].split())  # what is cut away need not be looked at
    shown = "".join(character if character.isprintable() else UNPRINTABLE for character in line)
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


def offset(seconds: float, of: float) -> str:
    """A moment within `of` seconds, with the same unit for all of them, so that a column of them can be read."""
    if of < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if of < 100 else f"{seconds:.0f} s" if of < 600 else duration(seconds)
