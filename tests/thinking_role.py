"""Tools for a role under the offline model, which calls them with its task's description."""

import asyncio
import json
from typing import Any

from muster_testing.roles import folder_of_test

# More roles of the harness's team.
THINKER = '  - {name: thinker, model: offline, tools: [{use: "tests.thinking_role:%s", env: [MUSTER_TEST_FOLDER]}]}\n'


def look_up(words: str) -> str:
    """Look something up; it has to be asked politely."""
    if "please" not in words:
        raise LookupError("say please")
    return f"found by {words!r}"


async def obey(orders: str) -> str:
    """Wait for the signal {"until": name}; then {"fail": text}, but once only."""
    said: dict[str, Any] = json.loads(orders)
    while not (folder_of_test() / said["until"]).exists():  # noqa: ASYNC110 - the signal is a file
        await asyncio.sleep(0.01)
    failed = folder_of_test() / "failed"
    if "fail" in said and not failed.exists():
        failed.touch()
        raise RuntimeError(said["fail"])
    return "obeyed"
