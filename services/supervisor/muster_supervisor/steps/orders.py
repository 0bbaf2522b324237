"""What an owner writes into the log when a person wants a task tried again, or gives it to somebody else."""

from muster_agent.team.schema import Team
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest
from muster_protocol.fold import RequestState, TaskState
from muster_protocol.fold.orders import fault_of_move, fault_of_retry, next_attempt
from muster_protocol.messages import Decision, ReassignTask, RetryTask
from muster_protocol.messages.people import SERVICES


def order_of(said: RetryTask | ReassignTask, by: str, state: RequestState, team: Team) -> Decision:
    """The decision; raises with the reason why it cannot be done."""
    if by.startswith(SERVICES):
        raise Invalid("a service cannot say that, only a person can", "sender")
    is_move = isinstance(said, ReassignTask)
    if fault := (fault_of_move if is_move else fault_of_retry)(state, said.task_id):
        raise Invalid(fault, "task_id")
    if state.cancelled is not None:
        raise Invalid(f"{state.request_id} is being ended", "request_id")
    task = state.tasks[said.task_id]
    ordered = Decision(
        decision="reassign" if is_move else "retry",
        control_sequence=0,
        by=by,
        reason=said.reason,
        task_id=said.task_id,
        attempt=next_attempt(task),
    )
    return ordered.model_copy(update=_to_whom(said, task, team)) if isinstance(said, ReassignTask) else ordered


def _to_whom(said: ReassignTask, task: TaskState, team: Team) -> dict[str, object]:
    """The fields that say who gets it."""
    if (said.role is None) == (said.worker is None):
        raise Invalid("say to which role, or to which worker", "role")
    if said.worker is not None:
        if said.worker not in team.workers:
            text = f"no worker {said.worker!r}"
            none = f"{text}: the team file names none; list it under workers and start it with --name"
            raise Invalid(f"{text}{nearest(said.worker, team.workers)}" if team.workers else none, "worker")
        if task.spec.worker == said.worker:
            raise Invalid(f"{said.task_id} is for worker {said.worker!r} already", "worker")
        return {"worker": said.worker, "timeout_seconds": _timeout(task, None, team)}
    roles = {role.name: role for role in team.roles}
    if said.role not in roles:
        raise Invalid(f"no role {said.role!r}{nearest(said.role or '', roles)}", "role")
    if said.role == _only_role(task, team):
        raise Invalid(f"{said.task_id} is for role {said.role!r} already; `retry` tries it again there", "role")
    return {"role": said.role, "timeout_seconds": _timeout(task, roles[said.role].timeout_seconds, team)}


def _only_role(task: TaskState, team: Team) -> str | None:
    """Who gets a task for which there is nothing to choose."""
    spec = task.spec
    if spec.worker is not None or spec.roles:
        return None
    names = {role.name for role in team.roles_matching((spec.tag or "",))}
    return spec.tag if spec.tag in names else names.pop() if len(names) == 1 else None


def _timeout(task: TaskState, there: float | None, team: Team) -> float | None:
    """The task's own, if its plan says one; else that of its new role, in place of that of the role before."""
    own = task.spec.timeout_seconds
    return there if own is None or own in {role.timeout_seconds for role in team.roles} else own
