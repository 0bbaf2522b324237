"""The role that the tests run: it does what the task's description says, and leaves a trace of every execution.

A description is JSON: {"sleep": s, "fail": text, "final": bool, "until": file, "times": n, "die": true, "say": output}.
"""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from muster_agent.functions import Context
from muster_protocol.errors import Retryable, Terminal
from muster_protocol.messages import Task

FOLDER = Path(os.environ.get("TEST_FOLDER", "."))


async def act(task: Task, ctx: Context) -> Any:
    orders: dict[str, Any] = json.loads(task.description.split("\n")[0])
    trace("start", task)
    if "until" in orders:
        while not (FOLDER / orders["until"]).exists():  # noqa: ASYNC110 - the sign is a file
            await asyncio.sleep(0.01)
    await asyncio.sleep(orders.get("sleep", 0))
    if orders.get("die"):
        os._exit(137)
    if "fail" in orders and task.attempt <= orders.get("times", 99):
        raise (Terminal if orders.get("final") else Retryable)(orders["fail"])
    ctx.progress(f"{task.task_id} is nearly there")
    trace("end", task)
    return orders.get("say", f"{task.task_id} of {task.request_id}")


def trace(what: str, task: Task) -> None:
    line = {
        "what": what,
        "request": task.request_id,
        "task": task.task_id,
        "attempt": task.attempt,
        "time": time.time(),
        "process": os.getpid(),
    }
    with (FOLDER / "trace.jsonl").open("a") as trace:
        trace.write(json.dumps(line) + "\n")
