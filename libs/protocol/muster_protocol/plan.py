"""A plan: tasks as a directed acyclic graph, in the words of the book; and the map that unfolds into one."""

from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from muster_protocol.subjects import Tag, TaskId

Aggregation = Literal["merge", "select", "reduce"]
MAX_TASKS = 10_000  # the largest request that the bench holds flat


class Frozen(BaseModel):
    """A value: never changed, and deaf to fields that a newer writer added.

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
