"""The roles of the bench: one that does nothing, and one that never ends by itself."""

import asyncio

from muster_agent.functions import Context
from muster_protocol.messages import Task


async def noop(_task: Task, _ctx: Context) -> str:
    return "ok"


def nothing() -> str:
    """A plain function, for a process of its own."""
    return "ok"


async def wait(_task: Task, _ctx: Context) -> None:
    """Until the request is cancelled."""
    await asyncio.Event().wait()
