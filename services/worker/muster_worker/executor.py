"""Runs one attempt of the role that has a task's tag. Whatever a role raises is its failure, never the worker's."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from muster_agent.budget import Limit, Meter
from muster_agent.functions import Context
from muster_agent.models.choose import choose_model
from muster_agent.models.port import Model
from muster_agent.spawning import Spawning
from muster_agent.team.schema import FunctionRole, ModelRole, Priorities, Role, Team
from muster_protocol.messages import Failure, Output, ResultStatus, Task
from muster_protocol.plan import TaskSpec
from muster_protocol.workers.role_card import RoleCard
from muster_worker.outcome import Outcome, failed, failure, failure_of, not_json, unfit
from muster_worker.runners.function import FunctionRunner
from muster_worker.runners.model import ModelRunner

Runner = FunctionRunner | ModelRunner


def _itself(model: Model) -> Model:
    return model


class Executor:
    """The roles of one worker, ready to run. `heard` may put something around each model that they use."""

    def __init__(
        self,
        team: Team,
        env: Mapping[str, str],
        roles: Iterable[str] | None = None,
        name: str | None = None,
        heard: Callable[[Model], Model] = _itself,
    ) -> None:
        chosen = team.roles if roles is None else tuple(team.role(name) for name in roles)
        self._team = team
        self._env = env
        self._heard = heard
        self._models: dict[tuple[str, float], Model] = {}
        self._by_tag: dict[str, Runner] = {}
        self._caps = {role.name: role.slots for role in chosen if "slots" in role.model_fields_set}
        for role in chosen:
            runner = self._runner(role)
            for tag in role.tags:
                self._by_tag.setdefault(tag, runner)
        if name in team.workers:  # tasks may ask for this worker; where they say no more, its first role does them
            self._by_tag.setdefault(name, self._by_tag[chosen[0].name])

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self._by_tag)

    @property
    def caps(self) -> list[tuple[list[str], int]]:
        """The tags of each role whose slots the team file sets, and how many tasks of it may run at once."""
        return [([tag for tag in self._by_tag if self.role_of(tag) == name], n) for name, n in self._caps.items()]

    @property
    def priorities(self) -> Priorities | None:
        return self._team.priorities

    def can_be_stopped(self, tag: str) -> bool:
        """Whether its role ends when it is told to: a plain function has a thread, which nobody can stop."""
        runner = self._by_tag[tag]
        return not isinstance(runner, FunctionRunner) or runner.is_async

    def role_of(self, tag: str) -> str:
        return self._by_tag[tag].name if tag in self._by_tag else ""

    @property
    def cards(self) -> tuple[RoleCard, ...]:
        """What those who plan may know of its roles."""
        return tuple({runner.name: runner.card for runner in self._by_tag.values()}.values())

    @property
    def notice(self) -> tuple[str, ...]:
        """What a person should be told about the models in use."""
        return tuple(dict.fromkeys(runner.notice for runner in self._by_tag.values() if runner.notice))

    async def run(self, task: Task, ctx: Context, meter: Meter | None = None) -> Outcome:
        """The outcome of one attempt; the only exception that leaves is a cancellation of the attempt itself.

        `meter` gets what is spent, also by an attempt that is cancelled.
        """
        runner = self._by_tag.get(task.tag)
        if runner is None:
            text = f"this worker has no role with the tag {task.tag!r}; it has: {', '.join(self._by_tag)}"
            return failed("", failure("logic", text, is_final=task.worker is not None))  # nobody else will get it
        meter = meter or meter_of(task)
        timer = asyncio.timeout(task.timeout_seconds)
        error: Failure | None = None
        output: Output = None
        spawning, added = Spawning(task, runner.name, is_allowed=runner.spawns), tuple[TaskSpec, ...]()
        try:
            async with timer:
                output = await runner.run(task, replace(ctx, spawn=spawning), meter)
            added = spawning.added()
            error = not_json(output) or unfit(output, task.expected_output)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            error = failure("logic", "the role was cancelled by something that it cancelled itself")
        except BaseException as raised:  # noqa: BLE001 - whatever a role raises is its failure
            is_late = isinstance(raised, TimeoutError) and timer.expired()
            late = f"no result within {task.timeout_seconds:g} s"
            error = failure("timeout", late) if is_late else failure_of(raised)
        if error is None:
            return Outcome(ResultStatus.DONE, runner.name, output, None, meter.usage, tuple(meter.tool_calls), added)
        if meter.asking:
            error = error.model_copy(update={"provider": meter.asking})
        return Outcome(ResultStatus.FAILED, runner.name, None, error, meter.usage, tuple(meter.tool_calls))

    def _runner(self, role: Role) -> Runner:
        match role:
            case FunctionRole():
                return FunctionRunner(role, self._team)
            case ModelRole():
                return ModelRunner(role, self._team, lambda name: self._model(name, role.offline_seconds))

    def _model(self, name: str, offline_seconds: float) -> Model:
        """One client per model and process."""
        key = (name, offline_seconds)
        if key not in self._models:
            self._models[key] = self._heard(choose_model(name, self._env, self._team.prices, offline_seconds))
        return self._models[key]


def meter_of(task: Task) -> Meter:
    """What an attempt may spend."""
    return Meter(Limit(task.tokens, task.usd))


def _is_cancelled() -> bool:
    """Whether the current task was asked to stop; a role can also raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
