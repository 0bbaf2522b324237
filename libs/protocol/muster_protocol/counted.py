"""A number with its noun, as people read it: `1 task`, `2,400 tasks`, `3 retries`."""

_PLURALS = {"retry": "retries", "try": "tries", "result not counted": "results not counted"}


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"
