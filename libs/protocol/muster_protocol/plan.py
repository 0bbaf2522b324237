"""A plan: tasks as a directed acyclic graph, in the words of the book."""

from collections.abc import Mapping
from typing import Any, Literal, Self, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from muster_protocol.subjects import Tag, TaskId, as_id

Aggregation = Literal["merge", "select", "reduce"]
MAX_TASKS = 10_000  # the largest request that the bench holds flat
MAX_DEPENDENCIES = 100_000  # of all tasks together; every owner and reader walks along each of them
MAX_INPUTS = 256 * 1024  # characters of JSON for one task: more is better read from where it lies


class Frozen(BaseModel):
    """A value: never changed; it ignores fields that a newer writer added.

    Numbers are finite: JSON has no other, so that an infinite one would be written as null and never read again.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)


class Retry(Frozen):
    """How failed attempts are tried again, where it is said; the rest is in the table of `retry.py`."""

    max_attempts: int | None = Field(default=None, ge=1, le=10)
    backoff_seconds: float | None = Field(default=None, ge=0, le=3600)  # before the second attempt; then it doubles
    refine: bool | None = None  # whether a model describes the task better first, whatever the class of the error

    def over(self, general: "Retry") -> "Retry":
        """What this says, and where it says nothing, what holds in general."""
        said = {name: value for name, value in self if value is not None}
        return general.model_copy(update=said) if said else general


TABLE = Retry()  # nothing is said: the table of `retry.py` holds


class AtLeast(Frozen):
    """So many of what a task gathers must be done."""

    at_least: int = Field(ge=0)


Gather = Literal["all", "done"] | AtLeast


class TaskSpec(Frozen):
    """One unit of work for one tag. `worker_type` is read as `tag`.

    `description` is for whoever thinks, `inputs` are for whoever computes. What came of a map or a broadcast says of
    which: `item_of` and `copy_of`. With `over` it is a template: it unfolds over the list that this task gave.
    """

    id: TaskId
    description: str = Field(min_length=1)
    tag: Tag | None = Field(default=None, validation_alias=AliasChoices("tag", "worker_type"))
    worker: Tag | None = None  # the name of the one worker that is to do it
    match_all: tuple[Tag, ...] = ()
    match_some: tuple[Tag, ...] = ()
    broadcast: bool = False
    dependencies: tuple[TaskId, ...] = ()
    gather: Gather | None = None  # how many of them must be done; see fold/gathering.py
    inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    expected_output: str | dict[str, Any] | None = None
    timeout_seconds: float | None = Field(default=None, gt=0)
    max_attempts: int | None = Field(default=None, ge=1, le=10)
    retry: Retry | None = None
    model: str | None = None
    roles: tuple[Tag, ...] = ()  # of several that match; written by whoever routes
    label: str = Field(default="", max_length=120)  # what people call it; its id if it has none
    item_of: TaskId | None = None
    copy_of: TaskId | None = None
    over: TaskId | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return self.label or self.id

    @field_validator("gather", mode="before")
    @classmethod
    def _is_all_done_or_a_number(cls, given: Any) -> Any:
        is_number = isinstance(given, AtLeast) or (isinstance(given, dict) and "at_least" in given)
        if given is not None and given not in ("all", "done") and not is_number:
            raise ValueError("is all, done or {at_least: n}")
        return cast("Any", given)


class Plan(Frozen):
    """The tasks of a request, and how their results become the answer."""

    goal: str = ""
    tasks: tuple[TaskSpec, ...] = Field(min_length=1, max_length=MAX_TASKS)
    aggregation: Aggregation = "merge"
    final_instruction: str = ""

    @model_validator(mode="after")
    def _limit_dependencies(self) -> Self:
        if any(task.over for task in self.tasks):
            object.__setattr__(self, "tasks", awaiting_lists(self.tasks))  # frozen, and still being built
        count = sum(len(task.dependencies) for task in self.tasks)
        if count > MAX_DEPENDENCIES:
            raise ValueError(f"{count:,} dependencies in all; the most is {MAX_DEPENDENCIES:,}")
        return self


def awaiting_lists(tasks: tuple[TaskSpec, ...]) -> tuple[TaskSpec, ...]:
    """The same tasks; one that unfolds over a list depends on whoever gives it."""
    return tuple(
        task.model_copy(update={"dependencies": (task.over, *task.dependencies)})
        if task.over and task.over not in task.dependencies
        else task
        for task in tasks
    )


def copy_id(task_id: TaskId, role: str) -> TaskId:
    """The id of a role's copy of a broadcast task."""
    return as_id(f"{task_id}-{role}")


Needs = Mapping[TaskId, tuple[TaskId, ...]]


def needs_of(plan: Plan) -> Needs:
    """What each task waits for."""
    return {task.id: task.dependencies for task in plan.tasks}


def ordered(needs: Needs) -> list[TaskId]:
    """Each task after all that it waits for; one that waits for itself or for nobody known is left out."""
    if not any(needs.values()):
        return list(needs)
    missing: dict[TaskId, int] = {}
    readers: dict[TaskId, list[TaskId]] = {}
    for task_id, dependencies in needs.items():
        awaited = set(dependencies)
        missing[task_id] = len(awaited)
        for need in awaited:
            readers.setdefault(need, []).append(task_id)
    placed = [task_id for task_id, count in missing.items() if count == 0]
    for task_id in placed:  # grows while it is read
        for reader in readers.get(task_id, ()):
            missing[reader] -= 1
            if missing[reader] == 0:
                placed.append(reader)
    return placed


def is_acyclic(plan: Plan) -> bool:
    """Whether ids are unique, dependencies exist and no task waits for itself; in time linear in the plan."""
    return len(ordered(needs_of(plan))) == len(plan.tasks)


def cycle_in(needs: Needs) -> list[TaskId]:
    """One cycle, from a task back to itself along what it waits for; empty when there is none."""
    left = needs.keys() - set(ordered(needs))
    if not left:
        return []
    path: dict[TaskId, None] = {}
    at = next(task_id for task_id in needs if task_id in left)
    while at not in path:  # everything left waits for something left, so the walk must come back
        path[at] = None
        at = next(need for need in needs[at] if need in left)
    walked = list(path)
    return [*walked[walked.index(at) :], at]
