"""Runs one attempt of the role that has a task's tag. Whatever a role raises is its failure, never the worker's."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from muster_agent.budget import Limit, Meter
from muster_agent.functions import Context
from muster_agent.isolation.environment import own_environment
from muster_agent.isolation.pool import Pool
from muster_agent.models.choose import choose_model
from muster_agent.models.port import Model
from muster_agent.spawning import Spawning
from muster_agent.team.schema import FunctionRole, ModelRole, Priorities, Role, Team
from muster_agent.tools.cached import KeptOutputs
from muster_agent.turns import UNSTORED, Overtaken, Turns
from muster_protocol.errors import cause_of
from muster_protocol.messages import Failure, Output, ResultStatus, Task
from muster_protocol.plan import TaskSpec
from muster_protocol.workers.role_card import RoleCard
from muster_worker.outcome import Outcome, failed, failure, failure_of, not_json, unfit
from muster_worker.runners.function import FunctionRunner
from muster_worker.runners.isolated import IsolatedRunner
from muster_worker.runners.limiting import TaskLimits
from muster_worker.runners.model import ModelRunner

Runner = FunctionRunner | IsolatedRunner | ModelRunner


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
        slots: int | None = None,
        heard: Callable[[Model], Model] = _itself,
    ) -> None:
        chosen = team.roles if roles is None else tuple(team.role(name) for name in roles)
        self._pool = Pool(slots or sum(role.slots for role in chosen), own_environment())
        self._team = team
        self._env = env
        self._heard = heard
        self._models: dict[tuple[str, float], Model] = {}
        self._by_tag: dict[str, Runner] = {}
        self._caps = {role.name: role.slots for role in chosen if "slots" in role.model_fields_set}
        self.limits: TaskLimits | None = None  # of the providers of its models, once there is a broker
        for role in chosen:
            runner = self._runner(role)
            for tag in role.tags:
                self._by_tag.setdefault(tag, runner)
        if name in team.workers:  # tasks may ask for this worker; where they say no more, its first role does them
            self._by_tag.setdefault(name, self._by_tag[chosen[0].name])

    @property
    def team(self) -> Team:
        return self._team

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

    def keep_outputs(self, kept_for: Callable[[str], KeptOutputs]) -> None:
        """From now on the outputs of cached tools are kept there, for each request."""
        for runner in self._by_tag.values():
            if isinstance(runner, ModelRunner):
                runner.kept_for = kept_for

    def can_be_stopped(self, tag: str) -> bool:
        """Whether its role ends when it is told to: a plain function has a thread, which nobody can stop."""
        runner = self._by_tag[tag]
        return not isinstance(runner, FunctionRunner) or runner.is_async

    def has_model(self, tag: str) -> bool:
        return isinstance(self._by_tag.get(tag), ModelRunner)

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
        """The outcome of one attempt; what leaves is a cancellation of the attempt itself, and Overtaken.

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
                output = await self._run(runner, task, replace(ctx, spawn=spawning), meter)
            added = spawning.added()
            error = not_json(output) or unfit(output, task.expected_output)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            error = failure("logic", "the role was cancelled by something that it cancelled itself")
        except BaseException as raised:  # noqa: BLE001 - whatever a role raises is its failure
            if isinstance(cause := cause_of(raised), Overtaken):
                raise cause from None
            is_late = isinstance(raised, TimeoutError) and timer.expired()
            late = f"no result within {task.timeout_seconds:g} s"
            error = failure("timeout", late) if is_late else failure_of(raised)
        if error is None:
            calls = tuple(meter.tool_calls)
            return Outcome(
                ResultStatus.DONE, runner.name, output, None, meter.usage, calls, added, meter.spent, meter.model
            )
        if meter.asking:
            error = error.model_copy(update={"provider": meter.asking})
        calls = tuple(meter.tool_calls)
        return Outcome(ResultStatus.FAILED, runner.name, None, error, meter.usage, calls, (), meter.spent, meter.model)

    async def _run(self, runner: Runner, task: Task, ctx: Context, meter: Meter) -> Output:
        if not isinstance(runner, ModelRunner) or self.limits is None:
            return await runner.run(task, ctx, meter)
        limited = self.limits.limited
        return await runner.run(task, ctx, meter, lambda model: limited(model, task, meter))

    async def close(self) -> None:
        """End the processes of its functions."""
        await self._pool.close()

    def _runner(self, role: Role) -> Runner:
        match role:
            case FunctionRole(isolated=True):
                return IsolatedRunner(role, self._team, self._pool)
            case FunctionRole():
                return FunctionRunner(role, self._team)
            case ModelRole():
                models = partial(self._model, offline_seconds=role.offline_seconds)
                return ModelRunner(role, self._team, models, self._pool, self._env)

    def _model(self, name: str, offline_seconds: float) -> Model:
        """One client per model and process."""
        key = (name, offline_seconds)
        if key not in self._models:
            prices, providers = self._team.prices, self._team.providers
            self._models[key] = self._heard(choose_model(name, self._env, prices, offline_seconds, providers))
        return self._models[key]


def meter_of(task: Task, turns: Turns = UNSTORED) -> Meter:
    """What an attempt may spend, and where its turns are kept."""
    return Meter(Limit(task.tokens, task.usd), turns=turns)


def _is_cancelled() -> bool:
    """Whether the current task was asked to stop; a role can also raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
