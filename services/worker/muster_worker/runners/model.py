"""Runs a role that uses a model: the loop of the model and the role's own tools."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from muster_agent.budget import Meter
from muster_agent.errors import BadOutput, KeyRefused
from muster_agent.functions import Context
from muster_agent.isolation.pool import Pool
from muster_agent.loop import Bounds, work
from muster_agent.models.port import Model, Style, WorkBrief
from muster_agent.models.styled import Styled
from muster_agent.team.schema import ADD_TASK, CANNOT_DO, ModelRole, Team, card_of
from muster_agent.tools.add_task import add_task_tool
from muster_agent.tools.cached import KeptOutputs, within
from muster_agent.tools.cannot_do import CANNOT_DO_TOOL
from muster_agent.tools.load import NO_KEYS, tools_for
from muster_agent.tools.shown import card_with
from muster_agent.tools.tool import Tool
from muster_protocol.fold.gathering import spread
from muster_protocol.messages import Output, Task
from muster_worker.runners.writing import Writing

Limited = Callable[[Model], Model]


def unlimited(model: Model) -> Model:
    """A model that asks whenever it is asked."""
    return model


class ModelRunner:
    """A role whose work is done by a model with tools."""

    def __init__(
        self,
        role: ModelRole,
        team: Team,
        models: Callable[[str], Model],
        pool: Pool | None = None,
        keys: Mapping[str, str] = NO_KEYS,
    ) -> None:
        self.name, self.spawns = role.name, role.spawns
        self._role, self._team = role, team
        self._models = models
        self._guidelines = team.supervisor.guidelines
        self._tools: dict[str, Tool] = tools_for(role, team, pool, keys)
        self.kept_for: Callable[[str], KeptOutputs] | None = None  # where the outputs of a request are kept
        model = self._usable(role.model)
        self.notice = model.notice
        provider = "" if role.other_model or role.fallbacks else model.provider
        self.card = card_with(card_of(role), team, self._tools).model_copy(update={"provider": provider})

    async def run(self, task: Task, ctx: Context, meter: Meter, limited: Limited = unlimited) -> Output:
        brief = WorkBrief(
            description=task.description,
            persona=self._role.persona,
            guidelines=self._guidelines,
            expected_output=task.expected_output,
            context=spread(task.context),
            inputs=task.inputs,
            notes=ctx.notes,
        )
        model = self._usable(task.model or self._role.model)
        meter.model = f"{model.provider}/{model.name}" if model.provider else model.name
        role = self._role
        bounds = Bounds(role.max_tokens, role.max_turns, task.timeout_seconds, role.context_tokens)
        tools = self._tools_for(task, ctx, model)
        writing = Writing(ctx.wrote) if self._role.stream else None
        styled = Styled(limited(model), Style(self._role.effort, self._role.thinking, writing))
        try:
            text = await work(styled, brief, tools, meter, ctx.tool_used, bounds)
        finally:
            if writing is not None:
                writing.finish()
        return output_of(text, task.expected_output)

    def _tools_for(self, task: Task, ctx: Context, model: Model) -> dict[str, Tool]:
        """The role's own tools, and those that come with what it may do and with its kind of model."""
        adding = {ADD_TASK: add_task_tool(ctx.spawn, self._team)} if self.spawns else {}
        saying = {CANNOT_DO: CANNOT_DO_TOOL} if model.is_llm else {}  # rules do not know what they cannot do
        own = self._tools if self.kept_for is None else within(self._tools, self.kept_for(task.request_id))
        return {**own, **adding, **saying}

    def _usable(self, name: str) -> Model:
        """The model of this name, or, where its key is missing, the first other one of the role that has its key."""
        others = [other for other in (self._role.model, *self._role.fallbacks) if other != name]
        for one in (name, *others) if self._role.fallbacks else ():
            with suppress(KeyRefused):
                return self._models(one)
        return self._models(name)  # nobody has a key: its error says which one is missing


def output_of(text: str, expected: str | dict[str, Any] | None) -> Output:
    """The text as it is, or, where the task has a schema, the JSON value in it."""
    if not isinstance(expected, dict):
        return text
    bare = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return json.loads(bare)
    except ValueError as error:
        raise BadOutput(f"the output is not JSON: {error}: {text[:200]!r}") from None
