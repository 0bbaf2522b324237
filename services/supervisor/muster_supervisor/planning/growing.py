"""By what a plan grows: the tasks that a list unfolds to, checked and routed like a plan. Pure.

The rules that the log alone decides are the fold's (`fault_of`); here are those that need the team.
"""

from typing import cast

from muster_agent.models.port import NOTHING
from muster_agent.team.schema import Team
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState, context_of, fault_of
from muster_protocol.messages import Extended, Failure, Usage
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.unfold import label_of, unfold_over
from muster_supervisor.planning.lint import errors, lint

MAX_SHOWN = 5  # mistakes in one refusal: more would hide the first


def grown(state: RequestState, cause: str, team: Team) -> Extended:
    """What is to be recorded for a cause."""
    try:
        add = _unfolded(state, state.growing[cause])
    except Invalid as reason:
        return refused(cause, "bad_output", str(reason))
    found = Extended(cause=cause, add=add)
    if fault := fault_of(state, found):  # before the lint: it names the limit
        return Extended(cause=cause, refused=fault)
    if mistakes := _mistakes(add, team):
        return refused(cause, "bad_output", "; ".join(mistakes[:MAX_SHOWN]))
    return found


def refused(cause: str, error_class: str, reason: str, usage: Usage = NOTHING) -> Extended:
    """The plan does not grow by this cause."""
    failure = Failure.model_validate({"class": error_class, "message": reason})
    return Extended(cause=cause, refused=failure, usage=usage)


def _unfolded(state: RequestState, task_id: str) -> tuple[TaskSpec, ...]:
    """The items of the list that a task goes over."""
    task = state.tasks[task_id]
    name = task.spec.over or ""
    given = context_of(state, task).get(name)
    if not isinstance(given, list):
        raise Invalid(f"{name} gave {label_of(given)!r}, which is no list")
    items = cast("list[object]", given)
    return unfold_over(task.spec, items) if items else ()


def _mistakes(add: tuple[TaskSpec, ...], team: Team) -> list[str]:
    """What keeps these tasks from running, by themselves: what else they depend on is there."""
    if not add:
        return []
    ids = {spec.id for spec in add}
    alone = [
        spec.model_copy(update={"dependencies": tuple(set(spec.dependencies) & ids), "gather": None}) for spec in add
    ]
    return [str(finding) for finding in errors(lint(Plan(tasks=tuple(alone)), team, is_map=True))]
