"""Runs a role that is a plain function in a process of its own."""

import json
from typing import Any

from muster_agent.budget import Meter
from muster_agent.functions import Context, load_handler
from muster_agent.isolation.messages import RoleRun
from muster_agent.isolation.pool import Pool, output_of
from muster_agent.isolation.process import Kind, Told
from muster_agent.team.schema import FunctionRole, Team, card_of
from muster_protocol.messages import Output, Task


class IsolatedRunner:
    """A role whose work is one function `handler(task, ctx)`, which has limits and can always be stopped."""

    def __init__(self, role: FunctionRole, team: Team, pool: Pool) -> None:
        self.name, self.spawns = role.name, role.spawns
        self.notice = ""  # a function uses no model
        self.card = card_of(role)
        load_handler(role.run, team.folder)  # what cannot be imported is an error before anything starts
        self._run, self._folder, self._pool = role.run, team.folder, pool
        self._kind = Kind(role.name, role.memory_mb, role.env)

    async def run(self, task: Task, ctx: Context, _meter: Meter) -> Output:
        run = RoleRun(
            function=self._run,
            folder=self._folder,
            seconds=task.timeout_seconds,
            role=self.name,
            spawns=self.spawns,
            task=task.body().decode(),
            outputs=json.dumps(dict(ctx.outputs)),
            notes=tuple(ctx.notes),
        )
        returned = await self._pool.call(self._kind, run, Told(ctx.progress, ctx.tool_used, ctx.notes), None)
        for added in json.loads(returned.tasks):
            fields: dict[str, Any] = added
            ctx.spawn(fields.pop("description"), **fields)
        return output_of(returned)
