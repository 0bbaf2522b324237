"""Roles that misbehave as their task's description says: {"action": what, …}, and a tool that never returns."""

import asyncio
import json
import re
import threading
import time
from typing import Any

from muster_agent.functions import Context
from muster_protocol.messages import Task
from muster_testing.roles import folder_of_test, record

RAISED = {
    "a name that is no Unicode": FileNotFoundError("no such file: \udcff"),
    "what is no Exception": GeneratorExit("enough"),
}


async def misbehave(task: Task, _ctx: Context) -> Any:
    orders: dict[str, Any] = json.loads(task.description)
    record("start", task)
    match orders["action"]:
        case "cancel itself":
            helper = asyncio.create_task(asyncio.sleep(10))
            helper.cancel()
            return await helper
        case "cancel its own task":
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            return await asyncio.sleep(10)
        case "raise":
            raise RAISED[orders["what"]]
        case "nest":
            output: Any = "at the bottom"
            for _ in range(orders["levels"]):
                output = [output]
            return output
        case "count far":
            return 10**5000
        case "say much":
            return "x" * orders["characters"]
        case "complain much":
            raise ValueError("x" * orders["characters"])
        case "stay":
            return await stay()
        case _:
            raise AssertionError(orders)


async def clean_up(task: Task, _ctx: Context) -> str:
    """Works until `go`; told to stop, it cleans up until `cleaned`, and then perhaps finishes as if nothing was."""
    record("start", task)
    try:
        await _given("go")
    except asyncio.CancelledError:
        record("cleaning", task)
        await _given("cleaned")
        record("cleaned", task)
        if not json.loads(task.description)["finishes"]:
            raise
    return "finished"


async def _given(name: str) -> None:
    while not (folder_of_test() / name).exists():  # noqa: ASYNC110 - the signal is a file
        await asyncio.sleep(0.01)


async def stay() -> None:
    """Refuses to be cancelled."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def block(task: Task, _ctx: Context) -> str:
    """No coroutine: it runs in a thread, which nobody can stop."""
    record("start", task)
    time.sleep(json.loads(task.description)["seconds"])
    return "done at last"


def hang(words: str) -> str:
    """A plain tool that never returns."""
    (folder_of_test() / "hanging").touch()
    threading.Event().wait()
    return words


async def hold(_task: Task, _ctx: Context) -> bool:
    """One call that lets no other thread run for a minute; its process is killed before."""
    return bool(re.match(r"(a+)+$", "a" * 32 + "b"))
