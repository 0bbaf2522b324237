"""A plan of one's own, written task by task: each is checked where it is written."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, TypedDict, Unpack

from pydantic import ValidationError

from muster_protocol import plan as values
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.plan import Aggregation


class TaskFields(TypedDict, total=False):
    """What may be said of a task beside its description, as in a plan's JSON; see docs/protocol.md."""

    id: str
    worker: str
    match_all: Iterable[str]
    match_some: Iterable[str]
    broadcast: bool
    gather: str | Mapping[str, int]
    inputs: Mapping[str, Any]
    expected_output: str | Mapping[str, Any]
    timeout_seconds: float
    max_attempts: int
    retry: Mapping[str, Any]
    model: str
    label: str
    over: str


KNOWN = {*TaskFields.__annotations__, "tag", "after"}


class Plan:
    """Tasks and what each waits for. `task()` gives the id by which others name it in `after`."""

    def __init__(self, goal: str = "", *, aggregation: Aggregation = "merge", final_instruction: str = "") -> None:
        self._about: dict[str, Any] = {
            "goal": goal,
            "aggregation": aggregation,
            "final_instruction": final_instruction,
        }
        self._tasks: dict[str, values.TaskSpec] = {}

    def task(
        self, description: str, *, tag: str | None = None, after: Iterable[str] = (), **fields: Unpack[TaskFields]
    ) -> str:
        """Add a task for a tag, to be done after others; returns its id."""
        dependencies = (after,) if isinstance(after, str) else tuple(after)
        unknown = [str(name) for name in fields if name not in KNOWN]
        if unknown:
            raise Invalid(f"a task has no {unknown[0]!r}{nearest(unknown[0], KNOWN)}", "task")
        free = (name for n in count(len(self._tasks) + 1) if (name := f"t{n}") not in self._tasks)
        task_id = fields.get("id") or next(free)
        if task_id in self._tasks:
            raise Invalid(f"a second task with the id {task_id!r}; take another", "task.id")
        needed = [*dependencies, *([fields["over"]] if "over" in fields else [])]
        for name in needed:
            if name not in self._tasks:
                known = nearest(name, self._tasks) if self._tasks else "; add it first"
                raise Invalid(f"no task {name!r} was added before{known}", "task.after")
        said = {**fields, "id": task_id, "description": description, "tag": tag, "dependencies": dependencies}
        try:
            self._tasks[task_id] = values.TaskSpec.model_validate(said)
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            raise Invalid(found["msg"], ".".join(["task", *map(str, found["loc"])])) from None
        return task_id

    @property
    def spec(self) -> values.Plan:
        """The plan as it is sent, and as `muster submit --plan` takes it."""
        if not self._tasks:
            raise Invalid("the plan has no task; add one with plan.task(…)", "plan")
        return values.Plan(**self._about, tasks=tuple(self._tasks.values()))
