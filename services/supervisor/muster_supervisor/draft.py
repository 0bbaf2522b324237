"""The part of a model's draft that can be read although the whole is no plan, so that all mistakes show. Pure."""

from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json

from muster_protocol.plan import MAX_TASKS, Plan, TaskSpec


def readable_part(draft: str) -> Plan | None:
    """A plan of the tasks that can be read, without what they need of the others; None if there is none."""
    try:
        fields = from_json(draft)
        listed = cast("dict[str, Any]", fields)["tasks"][:MAX_TASKS]
    except (ValueError, TypeError, KeyError):
        return None
    broken: set[str] = set()
    tasks = [task for one in listed if (task := _readable(one, broken)) is not None]
    if not tasks:
        return None
    kept = [
        task.model_copy(update={"dependencies": tuple(need for need in task.dependencies if need not in broken)})
        for task in tasks
    ]
    return Plan.model_construct(goal="", tasks=tuple(kept))


def _readable(fields: object, broken: set[str]) -> TaskSpec | None:
    """The task, or nothing; the id of one that is broken is remembered."""
    try:
        return TaskSpec.model_validate(fields)
    except ValidationError:
        if isinstance(fields, dict):
            broken.add(str(cast("dict[str, Any]", fields).get("id")))
        return None
