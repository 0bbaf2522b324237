"""The book's supervisor and workers: their call shapes, done by a team that runs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from muster_bus.buckets.workers import live_workers
from muster_client.seeds.pool import SharedMemoryPool
from muster_client.seeds.shapes import result_of
from muster_protocol.errors import Invalid
from muster_protocol.plan import Plan, TaskSpec


class Executed(TypedDict):
    """What a worker came to: `completed`, or `failed` with the reason as its result."""

    status: str
    result: Any
    worker: str


@dataclass(frozen=True, slots=True)
class Worker:
    """A role of the team, as the book describes a worker. `tools` are not needed: a tool's function says what it takes.

    The model stands in the team file; `model` is kept as it was given and not used.
    """

    name: str
    description: str
    system_prompt: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tool_handlers: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    model: str = ""

    def execute(self, task_description: str, context: dict[str, Any] | None = None) -> Executed:
        """Do one task, once; what went before is put before it."""
        parts = [task_description, *(f"[{name}]:\n{value}" for name, value in (context or {}).items())]
        return SharedMemoryPool().line.run(self._execute("\n\n".join(parts)))

    async def _execute(self, text: str) -> Executed:
        line = SharedMemoryPool().line
        plan = Plan(goal=text, tasks=(TaskSpec(id=self.name, tag=self.name, description=text),))
        request_id = await line.client.submit(plan=plan)
        found = result_of(await line.until(request_id, lambda state: state.answer is not None), self.name)
        return Executed(status=found["status"], result=found["result"], worker=self.name)


class Supervisor:
    """Plans a request for these workers, has it done, and returns the answer's text."""

    def __init__(self, workers: Mapping[str, Worker], model: str = "") -> None:
        self.workers = dict(workers)
        self.model = model  # of the book; the team file says which one is used

    def run(self, user_request: str) -> str:
        """Needs the team of these workers to run: `team_of(workers)` is its file."""
        return SharedMemoryPool().line.run(self._run(user_request))

    async def _run(self, text: str) -> str:
        client = SharedMemoryPool().line.client
        known = {tag for card in await live_workers(client.bus) for tag in card.tags}
        if missing := sorted(self.workers.keys() - known):
            reason = f"no live worker has the tag {missing[0]!r}; `muster up` the team of `team_of(workers)`"
            raise Invalid(reason, "workers")
        answer = await client.answer(await client.submit(text))
        return answer.text


def team_of(workers: Mapping[str, Worker], team: str = "default") -> dict[str, Any]:
    """The team file of the book's workers, to be written as JSON: that is YAML too.

    A tool is named by its function, which the worker's process imports: it must stand in a module beside the file.
    """
    roles = [
        {
            "name": name,
            "description": worker.description,
            "persona": worker.system_prompt,
            "tools": [_import_path(handler) for handler in worker.tool_handlers.values()],
        }
        for name, worker in workers.items()
    ]
    return {"team": team, "roles": roles}


def _import_path(handler: Callable[..., Any]) -> str:
    name = handler.__name__
    if handler.__qualname__ != name or name == "<lambda>":
        raise Invalid(
            f"{handler.__qualname__} is no function of a module, so a worker cannot import it", "tool_handlers"
        )
    if handler.__module__ != "__main__":
        return f"{handler.__module__}:{name}"
    return f"{Path(inspect.getfile(handler)).stem}:{name}"
