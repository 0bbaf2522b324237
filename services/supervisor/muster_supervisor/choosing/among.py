"""Gives each attempt that several roles could do to one of them, by what is known of these roles now."""

from muster_agent.team.schema import FunctionRole, Team
from muster_protocol.fold import TaskState
from muster_protocol.fold.results import elsewhere, is_refusal
from muster_protocol.messages import Reservation
from muster_supervisor.choosing.choose import choose
from muster_supervisor.decide import within_request
from muster_supervisor.owner import Owner


def with_role(owner: Owner, reservation: Reservation) -> Reservation | None:
    """The reservation with the role that was chosen; as it is where nothing is to be chosen. None: it must wait."""
    task = owner.state.tasks[reservation.task_id]
    breakers = owner.resources.breakers
    if breakers.are_closed and not task.spec.roles and not task.attempts:
        return reservation
    now = owner.now()
    held = () if breakers.are_closed else tuple(role for role in able(owner, task) if breakers.free_at(role) > now)
    if held and len(held) == len(able(owner, task)):
        return None
    chosen = _with_spare(owner, _chosen(owner, reservation, task, held), task)
    if not breakers.are_closed:
        _note_probe(owner, chosen.role or next(iter(able(owner, task)), None), now)
    return chosen


def able(owner: Owner, task: TaskState) -> tuple[str, ...]:
    """The roles of which one will get the next attempt; none, if the task names a worker."""
    if task.spec.worker is not None:
        return ()
    if task.attempts and is_refusal(task.attempts[-1].result):
        other = elsewhere(owner.state, task)
        if other is not None and other.model is not None:
            return (task.attempts[-1].role or task.tag,)
        if left := tuple(role for role in task.spec.roles if role not in task.tried):
            return left
    return task.spec.roles or tuple(role.name for role in owner.resources.team.roles_matching((task.tag,)))[:1]


def _note_probe(owner: Owner, role: str | None, now: float) -> None:
    if role is not None:
        owner.resources.breakers.probe(role, now)


def _with_spare(owner: Owner, chosen: Reservation, task: TaskState) -> Reservation:
    """With the role's other model, if the provider of its own does not answer and nobody asked for this model."""
    breakers = owner.resources.breakers
    if breakers.are_closed or chosen.model is not None or task.spec.model is not None:
        return chosen
    role = chosen.role or next(iter(able(owner, task)), "")
    spare = breakers.spare_of(role, owner.now())
    if spare is None:
        return chosen
    why = f"another model, since provider '{breakers.providers.of_role(role)}' does not answer"
    return chosen.model_copy(update={"model": spare, "why": f"{chosen.why}; {why}" if chosen.why else why})


def _chosen(owner: Owner, reservation: Reservation, task: TaskState, held: tuple[str, ...]) -> Reservation:
    if task.attempts and is_refusal(task.attempts[-1].result):
        other = elsewhere(owner.state, task)
        if other is not None and other.model is not None:
            why = f"another model, since {task.attempts[-1].role or task.tag} refused"
            return reservation.model_copy(update={"role": task.attempts[-1].role, "model": other.model, "why": why})
    if not task.spec.roles:
        return reservation
    attempt = owner.state.attempt_id(reservation.task_id, reservation.attempt)
    measuring, now = owner.resources.measuring, owner.now()
    turn = _turn(owner, task.spec.roles)
    left = tuple(role for role in task.spec.roles if role not in held)
    choice = choose(attempt, left, task.tried, lambda role: measuring.of(role).faded(now), turn)
    why = f"{choice.why}; {', '.join(held)} does not answer" if held else choice.why
    update: dict[str, object] = {"role": choice.role, "why": why}
    own = _timeouts(owner.resources.team).get(choice.role)
    if own is not None and task.spec.timeout_seconds is None:
        update |= within_request(owner.state, own, owner.now())
    return reservation.model_copy(update=update)


def functions(team: Team) -> frozenset[str]:
    """The tags of roles which are plain functions."""
    return frozenset(role.name for role in team.roles if isinstance(role, FunctionRole))


def _turn(owner: Owner, roles: tuple[str, ...]) -> int:
    """Whose turn it is while nothing is known: a number that grows with each choice of the request."""
    owner.turns[roles] += 1
    return owner.turns[roles] - 1


def _timeouts(team: Team) -> dict[str, float]:
    return {role.name: role.timeout_seconds for role in team.roles if role.timeout_seconds is not None}
