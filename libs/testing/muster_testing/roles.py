"""The scripted role: it does what its task's description says, and records every execution in `trace.jsonl`.

A description is JSON: {"until": signal, "block_until": signal, "sleep": seconds, "die": true, "fail": text, "times": n,
"final": bool, "spawn": [tasks, with "orders" in place of a description], "output": any}. All are optional; they are
obeyed in this order. `release()` gives the signal; `block_until` waits for it without `await`, so that the worker does
nothing else meanwhile.
"""

import asyncio
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from muster_agent.functions import Context
from muster_protocol.errors import Retryable, Terminal
from muster_protocol.messages import Task

TRACE = "trace.jsonl"
ALWAYS = 99  # more attempts than any task has


async def scripted(task: Task, ctx: Context) -> Any:
    """Name it in a team file: `run: muster_testing.roles:scripted`."""
    orders: dict[str, Any] = json.loads(task.description.split("\n")[0])
    record("start", task)
    try:
        return await _obey(orders, task, ctx)
    finally:
        record("over", task)  # also when it fails or is stopped; not when its process dies


async def _obey(orders: dict[str, Any], task: Task, ctx: Context) -> Any:
    if "until" in orders:
        while not (folder_of_test() / orders["until"]).exists():  # noqa: ASYNC110 - the signal is a file
            await asyncio.sleep(0.01)
    if "block_until" in orders:
        while not (folder_of_test() / orders["block_until"]).exists():
            time.sleep(0.01)  # noqa: ASYNC251 - that is what is ordered
    await asyncio.sleep(orders.get("sleep", 0))
    if orders.get("die"):
        os._exit(137)
    if "fail" in orders and task.attempt <= orders.get("times", ALWAYS):
        raise (Terminal if orders.get("final") else Retryable)(orders["fail"])
    for added in orders.get("spawn", ()):
        fields = dict(added)
        ctx.spawn(json.dumps(fields.pop("orders", {})), **fields)
    ctx.progress(f"{task.task_id} is nearly there")
    record("end", task)
    return orders.get("output", f"{task.task_id} of {task.request_id}")


def folder_of_test() -> Path:
    """The folder of the test whose services this process is one of."""
    return Path(os.environ.get("MUSTER_TEST_FOLDER", "."))


def record(what: str, task: Task) -> None:
    """Append a line about an execution."""
    line = {
        "what": what,
        "request": task.request_id,
        "task": task.task_id,
        "attempt": task.attempt,
        "time": time.time(),
        "process": os.getpid(),
    }
    with (folder_of_test() / TRACE).open("a") as trace:
        trace.write(json.dumps(line) + "\n")


def release(folder: Path, name: str) -> None:
    """Give the signal that tasks with {"until": name} wait for."""
    (folder / name).touch()


def traces(folder: Path, what: str = "start") -> list[dict[str, Any]]:
    """The recorded lines about the start, or the end, of executions."""
    path = folder / TRACE
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    complete = (json.loads(line) for line in lines if line.endswith("\n"))  # the last may just be being written
    return [line for line in complete if line["what"] == what]


def executions(folder: Path, request_id: str) -> Counter[str]:
    """How often each task of a request was started."""
    return Counter(line["task"] for line in traces(folder) if line["request"] == request_id)
