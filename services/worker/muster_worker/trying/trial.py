"""Runs one role alone, without a broker, and keeps what its model was asked and replied."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from muster_agent.budget import Meter
from muster_agent.functions import Context
from muster_agent.models.port import Ask, Model, Reply
from muster_agent.models.wrapped import Wrapped
from muster_agent.team.schema import Role, Team
from muster_agent.turns import Unstored
from muster_protocol.errors import cause_of
from muster_protocol.messages import Output, Task
from muster_worker.executor import Executor
from muster_worker.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of the model: what it was asked and its reply, or the error in its place."""

    model: str
    ask: Ask
    reply: Reply | None
    error: str
    seconds: float


@dataclass(slots=True)
class Trial:
    """What a role that was tried did."""

    role: Role
    outcome: Outcome
    seconds: float
    notices: tuple[str, ...]  # what a person should know about the model
    asked: list[Asked] = field(default_factory=list[Asked])
    progress: list[str] = field(default_factory=list[str])

    @property
    def output(self) -> Output:
        return self.outcome.output


class Overheard(Wrapped):
    """A model whose asks and replies are kept."""

    def __init__(self, model: Model, asked: list[Asked]) -> None:
        super().__init__(model)
        self._asked = asked

    async def ask(self, ask: Ask) -> Reply:
        began = time.monotonic()
        try:
            reply = await self._model.ask(ask)
        except Exception as raised:
            error = f"{type(cause_of(raised)).__name__}: {cause_of(raised)}"
            self._asked.append(Asked(self.name, ask, None, error, time.monotonic() - began))
            raise
        self._asked.append(Asked(self.name, ask, reply, "", time.monotonic() - began))
        return reply


class Trying:
    """One role of a team, loaded; raises Invalid if there is none of this name or its code cannot be imported."""

    def __init__(self, team: Team, name: str, env: Mapping[str, str]) -> None:
        self.asked: list[Asked] = []
        self.team, self.role = team, team.role(name)
        self.executor = Executor(team, env, [name], heard=lambda model: Overheard(model, self.asked))


def _ignore(_: str) -> None:
    """Show nothing."""


async def try_role(
    trying: Trying,
    text: str = "",
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Output] | None = None,
    model: str | None = None,
    on_progress: Callable[[str], None] = _ignore,
) -> Trial:
    """Do one task with it; a failure is in the outcome. `outputs` are those of the tasks that it would depend on."""
    task = task_of(trying, text, inputs or {}, outputs or {}, model)
    progress: list[str] = []

    def note(said: str) -> None:
        progress.append(said)
        on_progress(said)

    began = time.monotonic()
    try:
        turns = Unstored(f"try.{token_hex(8)}")  # no receiver takes the effects of two trials for one
        outcome = await trying.executor.run(task, Context(task.context, note), Meter(turns=turns))
    finally:
        await trying.executor.close()
    seconds = time.monotonic() - began
    return Trial(trying.role, outcome, seconds, trying.executor.notice, trying.asked, progress)


def task_of(
    trying: Trying, text: str, inputs: Mapping[str, Any], outputs: Mapping[str, Output], model: str | None
) -> Task:
    """The first attempt of a task that nobody planned."""
    now = time.time()
    seconds = trying.role.timeout_seconds or trying.team.limits.task_timeout_seconds
    return Task(
        request_id="try",
        task_id="try",
        attempt=1,
        tag=trying.role.name,
        team=trying.team.team,
        description=text,
        inputs=dict(inputs),
        context=dict(outputs),
        model=model,
        timeout_seconds=seconds,
        deadline=now + seconds,
        reserved_at=now,
        reserved_sequence=0,
    )
