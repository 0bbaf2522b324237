"""Who gets a task: which roles of the team match it, and the plan in which every task has one tag. Pure."""

from collections.abc import Callable
from typing import Any

from muster_agent.team.schema import Role, Team
from muster_protocol.plan import Plan, TaskSpec, copy_id

Matching = Callable[[TaskSpec], tuple[Role, ...]]


def is_by_name(task: TaskSpec) -> bool:
    """Whether nothing is said but who does it; one that was routed has the worker's name as its tag."""
    has_more = task.tag not in (None, task.worker) or task.match_all or task.match_some or task.broadcast
    return task.worker is not None and not has_more


def matcher(team: Team) -> Matching:
    """A function from a task to the roles that may get it; each combination of tags is looked up once."""
    known: dict[tuple[object, ...], tuple[Role, ...]] = {}

    def matching(task: TaskSpec) -> tuple[Role, ...]:
        if is_by_name(task):
            return ()  # it is for the worker to say which of its roles does it
        key = (task.tag, task.match_all, task.match_some)
        if key not in known:
            needed = (task.tag, *task.match_all) if task.tag else task.match_all
            known[key] = team.roles_matching(needed, task.match_some)
        return known[key]

    return matching


def _is_routed(task: TaskSpec, matching: Matching) -> bool:
    """Whether a task is already what routing makes of it."""
    return (
        bool(task.tag)
        and not task.broadcast
        and not task.roles
        and (len(matching(task)) == 1 or task.worker is not None)
    )


def _by_name(task: TaskSpec, needs: tuple[str, ...]) -> TaskSpec:
    """A task of which nothing is said but who does it: its tag is the worker's name."""
    return task.model_copy(update={"tag": task.worker, "dependencies": needs, "roles": ()})


def _listed(task: TaskSpec, team: Team) -> tuple[str, ...]:
    """Several roles that routing has listed before: a person may change a plan as it is shown."""
    is_as_it_was = task.roles and task.tag == task.roles[0]
    return task.roles if is_as_it_was and {role.name for role in team.roles}.issuperset(task.roles) else ()


def route(plan: Plan, team: Team) -> Plan:
    """The same plan with one tag for each task; a broadcast becomes one task for each matching role.

    Where several roles match, they are listed: the owner chooses one for each attempt.
    """
    matching = matcher(team)
    timeouts = {role.name: role.timeout_seconds for role in team.roles if role.timeout_seconds is not None}
    if not timeouts and all(_is_routed(task, matching) for task in plan.tasks):
        return plan
    copies = {
        task.id: tuple(copy_id(task.id, role.name) for role in matching(task)) for task in plan.tasks if task.broadcast
    }
    tasks: list[TaskSpec] = []
    for task in plan.tasks:
        needs = tuple(dict.fromkeys(new for old in task.dependencies for new in copies.get(old, (old,))))
        if not matching(task):  # lint has made sure that it names a worker
            tasks.append(_by_name(task, needs))
            continue
        is_open = not task.broadcast and task.worker is None  # a named worker has the roles that it has
        several = tuple(role.name for role in matching(task)) if is_open else ()
        several = several if len(several) > 1 else _listed(task, team) if is_open else ()
        for role in matching(task) if task.broadcast else matching(task)[:1]:
            update: dict[str, Any] = {
                "id": copy_id(task.id, role.name) if task.broadcast else task.id,
                "tag": role.name if task.broadcast or not task.tag else task.tag,
                "match_all": (),
                "match_some": (),
                "broadcast": False,
                "copy_of": task.id if task.broadcast else task.copy_of,
                "dependencies": needs,
                "timeout_seconds": task.timeout_seconds or (None if several else timeouts.get(role.name)),
                "roles": several,
            }
            tasks.append(task.model_copy(update=update))
    return plan.model_copy(update={"tasks": tuple(tasks)})
