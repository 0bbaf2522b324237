"""A function role for a process of its own: it does what its task's description says, {"do": what, …}."""

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from muster_agent.functions import Context
from muster_protocol.messages import Task
from muster_testing.roles import folder_of_test, record
from tests.isolation import strange


def obey(task: Task, ctx: Context) -> Any:
    orders: dict[str, Any] = json.loads(task.description)
    record("start", task)
    what = orders.pop("do")
    return OWN[what](ctx, **orders) if what in OWN else getattr(strange, what)(**orders)


async def obey_later(task: Task, ctx: Context) -> Any:
    """As an async function: it speaks from the event loop of its process."""
    ctx.progress("first")
    ctx.spawn(json.dumps({"output": "added"}), id="added", tag="scripted")
    ctx.progress("then")
    return {"description": task.description, "thread": threading.current_thread() is threading.main_thread()}


def _tell_all(ctx: Context) -> Any:
    print("the token is", os.environ["SHOP_TOKEN"])
    ctx.progress("half way")
    ctx.tool_used("look", 0.1, None, None)
    added = ctx.spawn(json.dumps({"output": "added"}), tag="scripted")
    known = sorted(name for name in os.environ if name.startswith(("ANTHROPIC", "MUSTER", "SHOP")))
    return {"outputs": dict(ctx.outputs), "added": added, "variables": known}


def _wait_for_note(ctx: Context) -> Any:
    while not ctx.notes:
        time.sleep(0.01)
    return list(ctx.notes)


def _start_many(_ctx: Context, number: int) -> None:
    strange.start_many(str(folder_of_test()), number)


def _hang_unless_told(ctx: Context, number: int) -> str:
    if not (folder_of_test() / "go").exists():
        _start_many(ctx, number)
    return "done at last"


def _spawn(ctx: Context) -> str:
    return ctx.spawn("{}", tag="scripted")


OWN: dict[str, Callable[..., Any]] = {
    "tell all": _tell_all,
    "wait for a note": _wait_for_note,
    "start many": _start_many,
    "hang unless told": _hang_unless_told,
    "spawn what it may not": _spawn,
}
