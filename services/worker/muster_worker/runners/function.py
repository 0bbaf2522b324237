"""Runs a role that is a plain function: an async one in the event loop, any other in a thread."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace

from muster_agent.budget import Meter
from muster_agent.functions import Context, call, load_handler
from muster_agent.team.schema import FunctionRole, Team, card_of
from muster_protocol.messages import Output, Task


class FunctionRunner:
    """A role whose work is one function `handler(task, ctx)`."""

    def __init__(self, role: FunctionRole, team: Team) -> None:
        self.name, self.spawns = role.name, role.spawns
        self.notice = ""  # a function uses no model
        self.card = card_of(role)
        self._handler = load_handler(role.run, team.folder)
        self._is_async = inspect.iscoroutinefunction(self._handler)

    async def run(self, task: Task, ctx: Context, _meter: Meter) -> Output:
        if self._is_async:
            return await self._handler(task, ctx)
        return await call(self._handler, task, replace(ctx, progress=_from_thread(ctx.progress)))


def _from_thread(progress: Callable[[str], None]) -> Callable[[str], None]:
    """The same `progress` for a caller in another thread: the event loop makes the call."""
    loop = asyncio.get_running_loop()

    def report(text: str) -> None:
        loop.call_soon_threadsafe(progress, text)

    return report
