"""Fields that nobody reads: on the wire they are passed over, in a file that a person wrote they are a mistake."""

from typing import Any, cast

from muster_agent.team import nearest
from muster_protocol.errors import Invalid
from muster_protocol.messages import Budget, Request
from muster_protocol.plan import Frozen, MapOver, Plan, TaskSpec, Template

ALSO_READ = {"worker_type"}  # as `tag`
INSIDE: dict[tuple[type[Frozen], str], type[Frozen]] = {
    (Request, "plan"): Plan,
    (Request, "map"): MapOver,
    (Request, "budget"): Budget,
    (Plan, "tasks"): TaskSpec,
    (MapOver, "template"): Template,
    (MapOver, "reduce"): Template,
}


def check_spelling(fields: object, of: type[Frozen] = Request, where: str = "") -> None:
    """Raise at the first field that is none; what is no object at all is left to the model."""
    if isinstance(fields, list):
        for place, one in enumerate(cast("list[Any]", fields)):
            check_spelling(one, of, f"{where}.{place}")
    if not isinstance(fields, dict):
        return
    for name, value in cast("dict[str, Any]", fields).items():
        at = f"{where}.{name}".removeprefix(".")
        if name not in of.model_fields and name not in ALSO_READ:
            raise Invalid(f"no such field{nearest(name, of.model_fields)}", at)
        if (inner := INSIDE.get((of, name))) is not None:
            check_spelling(value, inner, at)
