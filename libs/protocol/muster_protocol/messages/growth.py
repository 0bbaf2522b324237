"""On `results.<request_id>`: how the plan grew, and how far it may."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from muster_protocol.messages.base import Usage
from muster_protocol.messages.entry import LogEntry
from muster_protocol.messages.result import Failure
from muster_protocol.plan import Frozen, TaskSpec, awaiting_lists
from muster_protocol.sender import Origin
from muster_protocol.subjects import TaskId

OVER, SPAWNED, REVIEW, FAILURE = "over", "spawned", "review", "failure"  # what makes a plan grow; see fold/growth.py
# Each with the task that it is of, a review with its number.
GrowthCause = Annotated[
    str, StringConstraints(pattern=r"^((over|spawned|failure):[A-Za-z0-9_-]{1,64}|review:[1-9][0-9]{0,3})$")
]


def kind_of(cause: str) -> str:
    """What makes a plan grow, without of what."""
    return cause.partition(":")[0]


def origin_text(cause: str) -> str:
    """Where a task comes from by which the plan grew, in words for people."""
    kind, _, of = cause.partition(":")
    return {OVER: "an item of {}", SPAWNED: "added by {}", REVIEW: "added by review {}"}.get(
        kind, "in place of what {} was needed for"
    ).format(of)


class GrowthLimits(Frozen):
    """How far a plan may grow. Where nothing is said, no supervisor looks at it again."""

    tasks: int = Field(default=2_000, ge=1)  # of the request, those that it began with included
    rounds: int = Field(default=0, ge=0)  # reviews of the results
    depth: int = Field(default=3, ge=0)  # of tasks that were spawned by tasks that were spawned; 0: none is spawned
    replacements: int = Field(default=0, ge=0)  # failures for which other tasks are looked for


class Extended(LogEntry):
    """What a cause came to: tasks that are added or dropped, none, or a refusal. The first one of a cause counts."""

    kind: ClassVar[str] = "extended"
    free_text: ClassVar[tuple[str, ...]] = (
        "add.description",
        "add.expected_output",
        "add.inputs",
        "add.label",
        "refused.message",
        "refused.stack",
        "reason",
    )

    cause: GrowthCause
    add: tuple[TaskSpec, ...] = ()
    drop: tuple[TaskId, ...] = ()  # that were never reserved
    refused: Failure | None = None
    usage: Usage = Usage()
    reason: str = ""

    @model_validator(mode="after")
    def _await_lists(self) -> Self:
        if any(task.over for task in self.add):
            object.__setattr__(self, "add", awaiting_lists(self.add))  # frozen, and still being built
        return self

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}.{self.cause}"
