"""Tools with an effect, whose receiver is a file: each call that reaches it is a line, with its key if it has one."""

import asyncio
from pathlib import Path

from muster_testing.roles import folder_of_test

RECEIVED = "received.txt"


async def buy(article: str, key: str) -> str:
    """Buy an article. Whoever receives the order knows one that comes again by its key."""
    return await _receive(f"{key} {article}", article)


async def send(article: str) -> str:
    """Send an article."""
    return await _receive(article, article)


async def _receive(line: str, article: str) -> str:
    with (folder_of_test() / RECEIVED).open("a") as received:
        received.write(line + "\n")
    while (folder_of_test() / "hold").exists():  # noqa: ASYNC110 - the signal is a file
        await asyncio.sleep(0.01)
    return f"{article} is on its way"


def received(folder: Path) -> list[str]:
    """All that reached the receiver, also what came again."""
    path = folder / RECEIVED
    return path.read_text().splitlines() if path.exists() else []
