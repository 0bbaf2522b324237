"""Runs a role that uses a model: the loop of the model and the role's own tools."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from muster_agent.budget import Meter
from muster_agent.errors import BadOutput
from muster_agent.functions import Context
from muster_agent.loop import Bounds, work
from muster_agent.models.port import Model, WorkBrief
from muster_agent.team.schema import ADD_TASK, ModelRole, Team, card_of
from muster_agent.tools.add_task import add_task_tool
from muster_agent.tools.cached import KeptOutputs, within
from muster_agent.tools.load import NO_KEYS, tools_for
from muster_agent.tools.shown import card_with
from muster_agent.tools.tool import Tool
from muster_protocol.fold.gathering import spread
from muster_protocol.messages import Output, Task


class ModelRunner:
    """A role whose work is done by a model with tools."""

    def __init__(
        self, role: ModelRole, team: Team, models: Callable[[str], Model], keys: Mapping[str, str] = NO_KEYS
    ) -> None:
        self.name, self.spawns = role.name, role.spawns
        self._role, self._team = role, team
        self._models = models
        self._guidelines = team.supervisor.guidelines
        self._tools: dict[str, Tool] = tools_for(role, team, keys)
        self.kept_for: Callable[[str], KeptOutputs] | None = None  # where the outputs of a request are kept
        model = models(role.model)
        self.notice = model.notice
        provider = "" if role.other_model else model.provider
        self.card = card_with(card_of(role), team, self._tools).model_copy(update={"provider": provider})

    async def run(self, task: Task, ctx: Context, meter: Meter) -> Output:
        brief = WorkBrief(
            description=task.description,
            persona=self._role.persona,
            guidelines=self._guidelines,
            expected_output=task.expected_output,
            context=spread(task.context),
            inputs=task.inputs,
            notes=ctx.notes,
        )
        model = self._models(task.model or self._role.model)
        bounds = Bounds(self._role.max_tokens, self._role.max_turns, task.timeout_seconds)
        tools = self._tools if self.kept_for is None else within(self._tools, self.kept_for(task.request_id))
        tools = {**tools, ADD_TASK: add_task_tool(ctx.spawn, self._team)} if self.spawns else tools
        text = await work(model, brief, tools, meter, ctx.tool_used, bounds)
        return output_of(text, task.expected_output)


def output_of(text: str, expected: str | dict[str, Any] | None) -> Output:
    """The text as it is, or, where the task has a schema, the JSON value in it."""
    if not isinstance(expected, dict):
        return text
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return json.loads(bare)
    except ValueError as error:
        raise BadOutput(f"the output is not JSON: {error}: {text[:200]!r}") from None
