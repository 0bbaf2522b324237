"""On `results.<request_id>`: how the plan grew, and how far it may."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from muster_protocol.messages.base import Usage
from muster_protocol.messages.entry import LogEntry
from muster_protocol.messages.result import Failure
from muster_protocol.plan import Frozen, TaskSpec, awaiting_lists
from muster_protocol.sender import Origin

# What makes a plan grow, and of which task.
GrowthCause = Annotated[str, StringConstraints(pattern=r"^over:[A-Za-z0-9_-]{1,64}$")]


class GrowthLimits(Frozen):
    """How far a plan may grow."""

    tasks: int = Field(default=2_000, ge=1)  # of the request, those that it began with included


class Extended(LogEntry):
    """What a cause came to: tasks that are added, none, or a refusal. The first one of a cause counts."""

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
