"""The tasks that a role adds while it does its own: they travel with its result, and the plan grows by them."""

from typing import Any, Protocol

from pydantic import ValidationError

from muster_agent.errors import MayNotSpawn
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.messages import Task
from muster_protocol.messages.result import MAX_SPAWNED
from muster_protocol.plan import TaskSpec
from muster_protocol.subjects import as_id

NOT_ALLOWED = "the role {role!r} may not add tasks; write spawns: true under it in the team file"
OURS = {"item_of", "copy_of", "roles"}  # written by whoever routes and unfolds
FIELDS = sorted((TaskSpec.model_fields.keys() - OURS) | {"worker_type"})


class Spawn(Protocol):
    """`ctx.spawn(description, tag=…)` adds a task with the fields of a plan's task, and returns its id."""

    def __call__(self, description: str, **fields: Any) -> str: ...


class Spawning:
    """What one attempt adds. Without an `id` a task is new; one with an id that the request has is not added again."""

    def __init__(self, task: Task, role: str, *, is_allowed: bool) -> None:
        self._task, self._role = task, role
        self._is_allowed = is_allowed
        self._added: dict[str, TaskSpec] = {}
        self._tried = False

    def __call__(self, description: str, **fields: Any) -> str:
        if not self._is_allowed:
            self._tried = True
            raise MayNotSpawn(NOT_ALLOWED.format(role=self._role))
        if unknown := [name for name in fields if name not in FIELDS]:
            raise Invalid(f"a task has no {unknown[0]!r}{nearest(unknown[0], FIELDS)}", "spawn")
        if not fields.keys() & {"tag", "worker_type", "worker", "match_all", "match_some", "broadcast"}:
            fields["tag"] = self._role
        fields.setdefault("id", as_id(f"{self._task.task_id}-s{len(self._added) + 1}"))
        try:
            spec = TaskSpec.model_validate({**fields, "description": description})
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            raise Invalid(found["msg"], ".".join(["spawn", *map(str, found["loc"])])) from None
        if spec.id not in self._added and len(self._added) == MAX_SPAWNED:
            raise Invalid(f"a task adds {MAX_SPAWNED:,} others at the most", "spawn")
        self._added.setdefault(spec.id, spec)
        return spec.id

    def added(self) -> tuple[TaskSpec, ...]:
        """All that was added; a role that may not and tried has failed, even if it passed over the error."""
        if self._tried:
            raise MayNotSpawn(NOT_ALLOWED.format(role=self._role))
        return tuple(self._added.values())
