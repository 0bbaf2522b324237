"""Numbers and names as people read them: `1 task`, `2,400 tasks`, `a, b, c and 7 more`."""

NAMES = 3  # that are named before the rest is counted
_PLURALS = {"retry": "retries", "try": "tries", "result not counted": "results not counted"}


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"


def few(names: list[str]) -> str:
    """The first names, and how many more there are."""
    if len(names) <= NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:NAMES])} and {len(names) - NAMES} more"
