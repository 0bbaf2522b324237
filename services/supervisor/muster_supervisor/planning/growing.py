"""By what a plan grows: the tasks that a list unfolds to or that a task spawned, checked and routed like a plan. Pure.

The rules that the log alone decides are the fold's (`fault_of`); here are those that need the team.
"""

from typing import cast

from muster_agent.models.port import NOTHING
from muster_agent.spawning import NOT_ALLOWED
from muster_agent.team.schema import Team
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, TaskState, context_of, fault_of
from muster_protocol.messages import Extended, Failure, Usage
from muster_protocol.messages.growth import OVER, kind_of
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.unfold import label_of, unfold_over
from muster_supervisor.planning.lint_growth import errors_of_added
from muster_supervisor.planning.routing import route

MAX_SHOWN = 5  # mistakes in one refusal: more would hide the first


def grown(state: RequestState, cause: str, team: Team) -> Extended:
    """What is to be recorded for a cause that a task is behind."""
    task = state.tasks[state.growing[cause]]
    try:
        if kind_of(cause) == OVER:
            return _checked(state, Extended(cause=cause, add=_unfolded(state, task)), team)
        return routed(state, Extended(cause=cause, add=_spawned(state, task, team)), team)
    except Invalid as reason:
        return refused(cause, "bad_output", str(reason))


def refused(cause: str, error_class: str, reason: str, usage: Usage = NOTHING) -> Extended:
    """The plan does not grow by this cause."""
    failure = Failure.model_validate({"class": error_class, "message": reason})
    return Extended(cause=cause, refused=failure, usage=usage)


def routed(state: RequestState, found: Extended, team: Team) -> Extended:
    """The growth as it may be recorded, of tasks that somebody thought of: they are routed, or it is refused."""
    if mistakes := _mistakes(found.add, team):
        return refused(found.cause, "bad_output", "; ".join(mistakes[:MAX_SHOWN]))
    if found.add:
        found = found.model_copy(update={"add": route(Plan(tasks=found.add), team).tasks})
    fault = fault_of(state, found)
    return Extended(cause=found.cause, refused=fault) if fault else found


def _checked(state: RequestState, found: Extended, team: Team) -> Extended:
    """The growth as it may be recorded, of items that are routed as their template was."""
    if fault := fault_of(state, found):  # before the lint: it names the limit
        return Extended(cause=found.cause, refused=fault)
    if mistakes := _mistakes(found.add, team):
        return refused(found.cause, "bad_output", "; ".join(mistakes[:MAX_SHOWN]))
    return found


def _unfolded(state: RequestState, task: TaskState) -> tuple[TaskSpec, ...]:
    """The items of the list that a task goes over."""
    name = task.spec.over or ""
    given = context_of(state, task).get(name)
    if not isinstance(given, list):
        raise Invalid(f"{name} gave {label_of(given)!r}, which is no list")
    items = cast("list[object]", given)
    return unfold_over(task.spec, items) if items else ()


def _spawned(state: RequestState, task: TaskState, team: Team) -> tuple[TaskSpec, ...]:
    """The tasks that a result asks for, without those that the request has or had: an id says which task is meant."""
    assert task.success is not None
    role = next((role for role in team.roles if role.name == task.role), None)
    if role is None or not role.spawns:
        raise Invalid(NOT_ALLOWED.format(role=task.role))
    broadcast = {one.spec.copy_of for one in state.tasks.values()}  # of which there are only the copies
    known = state.tasks.keys() | state.dropped.keys() | broadcast
    return tuple(spec for spec in task.success.tasks if spec.id not in known)


def _mistakes(add: tuple[TaskSpec, ...], team: Team) -> list[str]:
    return [str(finding) for finding in errors_of_added(add, team)] if add else []
