"""A plan: tasks as a directed acyclic graph, in the words of the book; and the map that unfolds into one."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from muster_protocol.errors import Invalid
from muster_protocol.subjects import Tag, TaskId, as_id

Aggregation = Literal["merge", "select", "reduce"]
MAX_TASKS = 10_000  # the largest request that the bench holds flat
MAX_DEPENDENCIES = 100_000  # of all tasks together; every owner and reader walks along each of them
MAX_UNFOLDED = 32 * 1024 * 1024  # characters: half a megabyte of map must not become gigabytes


class Frozen(BaseModel):
    """A value: never changed; it ignores fields that a newer writer added.

    Numbers are finite: JSON has no other, so that an infinite one would be written as null and never read again.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)


class TaskSpec(Frozen):
    """One unit of work for one tag. `worker_type` is read as `tag`."""

    id: TaskId
    description: str = Field(min_length=1)
    tag: Tag | None = Field(default=None, validation_alias=AliasChoices("tag", "worker_type"))
    match_all: tuple[Tag, ...] = ()
    match_some: tuple[Tag, ...] = ()
    broadcast: bool = False
    dependencies: tuple[TaskId, ...] = ()
    expected_output: str | dict[str, Any] | None = None
    timeout_seconds: float | None = Field(default=None, gt=0)
    max_attempts: int | None = Field(default=None, ge=1, le=10)
    model: str | None = None


class Plan(Frozen):
    """The tasks of a request, and how their results become the answer."""

    goal: str = ""
    tasks: tuple[TaskSpec, ...] = Field(min_length=1, max_length=MAX_TASKS)
    aggregation: Aggregation = "merge"
    final_instruction: str = ""

    @model_validator(mode="after")
    def _limit_dependencies(self) -> Self:
        count = sum(len(task.dependencies) for task in self.tasks)
        if count > MAX_DEPENDENCIES:
            raise ValueError(f"{count:,} dependencies in all; the most is {MAX_DEPENDENCIES:,}")
        return self


class Template(Frozen):
    """What each item of a map becomes: `{item}` in the description stands for it."""

    description: str = Field(min_length=1)
    tag: Tag = Field(validation_alias=AliasChoices("tag", "worker_type"))
    expected_output: str | dict[str, Any] | None = None
    timeout_seconds: float | None = Field(default=None, gt=0)
    max_attempts: int | None = Field(default=None, ge=1, le=10)


class MapOver(Frozen):
    """One template over many items, optionally followed by one task that sees all results."""

    template: Template
    items: tuple[str, ...] = Field(min_length=1, max_length=MAX_TASKS - 1)
    reduce: Template | None = None


def unfold(over: MapOver, goal: str = "") -> Plan:
    """The plan of a map: `item-1` … `item-n`, then `reduce`."""
    text = over.template.description
    size = len(over.items) * len(text) + text.count("{item}") * sum(map(len, over.items))
    if size > MAX_UNFOLDED:
        raise Invalid(f"unfolds to {size:,} characters; the most is {MAX_UNFOLDED:,}", "map")
    tasks = [
        TaskSpec(
            id=f"item-{number}",
            description=over.template.description.replace("{item}", item),
            tag=over.template.tag,
            expected_output=over.template.expected_output,
            timeout_seconds=over.template.timeout_seconds,
            max_attempts=over.template.max_attempts,
        )
        for number, item in enumerate(over.items, 1)
    ]
    if over.reduce is not None:
        tasks.append(
            TaskSpec(
                id="reduce",
                description=over.reduce.description,
                tag=over.reduce.tag,
                dependencies=tuple(task.id for task in tasks),
                expected_output=over.reduce.expected_output,
                timeout_seconds=over.reduce.timeout_seconds,
                max_attempts=over.reduce.max_attempts,
            )
        )
    return Plan(goal=goal or over.template.description, tasks=tuple(tasks))


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
