"""Which growth of a plan is allowed, as far as the log alone decides that."""

from collections.abc import Sequence
from typing import NamedTuple

from muster_protocol.counted import counted
from muster_protocol.fold.state import RequestState, TaskPhase, TaskState
from muster_protocol.messages import Extended, Failure
from muster_protocol.messages.growth import FAILURE, OVER, SPAWNED, kind_of
from muster_protocol.plan import MAX_DEPENDENCIES, AtLeast, TaskSpec, ordered


class _Growth(NamedTuple):
    """A growth that is judged: what it adds, and the task that it comes from."""

    kind: str
    task: TaskState | None
    add: tuple[TaskSpec, ...]
    drop: frozenset[str]

    @property
    def waiting(self) -> Sequence[str]:
        """Who will wait for what is added."""
        return self.task.dependents if self.task is not None and self.kind in (OVER, SPAWNED) else ()


def cause_of(state: RequestState, cause: str) -> TaskState | None:
    """The task that a cause is of; None: it is a review."""
    return state.tasks.get(state.growing[cause])


def fault_of(state: RequestState, body: Extended) -> Failure | None:
    """Which rule a growth breaks; None: it may be recorded."""
    growth = _Growth(kind_of(body.cause), cause_of(state, body.cause), body.add, frozenset(body.drop))
    if too_many := _excess(state, growth):
        return _refused("budget", too_many)
    fault = _fault_of_drop(state, growth) or _fault_of_ids(state, growth) or _fault_of_needs(state, growth)
    fault = fault or _fault_of_gather(state, growth)
    return _refused("logic", fault) if fault else None


def _refused(error_class: str, message: str) -> Failure:
    return Failure.model_validate({"class": error_class, "message": message})


def _excess(state: RequestState, growth: _Growth) -> str:
    """Which limit a growth goes beyond."""
    assert state.plan_entry is not None
    limits = state.plan_entry.growth
    count = len(state.tasks) + len(growth.add) - len(growth.drop)
    if growth.add and count > limits.tasks:
        more = f"{counted(len(growth.add), 'task')} more would make {count:,}"
        return f"{more}; the request may have {limits.tasks:,}: see limits.tasks and budget.tasks"
    if growth.kind == SPAWNED and growth.task is not None and growth.add and growth.task.depth >= limits.depth:
        return f"what was spawned may spawn {counted(limits.depth, 'level')} deep: see limits.depth"
    return ""


def _fault_of_drop(state: RequestState, growth: _Growth) -> str:
    """Tasks that may not go, and others that would wait for them in vain."""
    if growth.drop and growth.kind != FAILURE:
        return "only for a failure may tasks be dropped"
    for name in sorted(growth.drop):
        task = state.tasks.get(name)
        if task is None:
            return f"no task has the id {name!r}"
        if task.attempts or task.phase in (TaskPhase.DONE, TaskPhase.FAILED):
            return f"{name} cannot be dropped: it has begun or ended"
        kept = next((each for each in task.dependents if each not in growth.drop), None)
        if kept is not None:
            return f"{kept} depends on {name}, which would be dropped"
    return ""


def _fault_of_ids(state: RequestState, growth: _Growth) -> str:
    new: set[str] = set()
    for spec in growth.add:
        if spec.id in state.tasks or spec.id in new:
            return f"there is a task {spec.id} already"
        if spec.id in state.dropped:
            return f"there was a task {spec.id} already"
        if spec.tag is None:
            return f"{spec.id} has no tag"
        new.add(spec.id)
    for spec in growth.add if growth.kind != OVER else ():
        group = spec.item_of or spec.copy_of
        if group in state.tasks or group in new:
            return f"{spec.id} would be a part of {group}, which is a task of its own"
    return ""


def _fault_of_needs(state: RequestState, growth: _Growth) -> str:
    """Dependencies on nobody, circles, and too many of them."""
    new = {spec.id: spec.dependencies for spec in growth.add}
    needed = {name for needs in new.values() for name in needs if name not in new}
    if unknown := sorted(name for name in needed if name not in state.tasks or name in growth.drop):
        return f"no task has the id {unknown[0]!r}"
    among = {name: tuple(need for need in needs if need in new) for name, needs in new.items()}
    if len(ordered(among)) < len(new) or not needed.isdisjoint(_behind(state, growth, needed)):
        return "tasks would wait for each other"
    count = sum(len(task.spec.dependencies) for task in state.tasks.values()) + sum(map(len, new.values()))
    count += len(new) * len(growth.waiting)
    return f"{count:,} dependencies in all; the most is {MAX_DEPENDENCIES:,}" if count > MAX_DEPENDENCIES else ""


def _behind(state: RequestState, growth: _Growth, needed: set[str]) -> set[str]:
    """What will wait for what is added, however indirectly; not looked up where all that it needs is done."""
    if all(state.tasks[name].phase is TaskPhase.DONE or state.tasks[name] is growth.task for name in needed):
        return set()
    reached = dict.fromkeys(growth.waiting)
    for name in (walk := list(reached)):  # grows while it is read
        for further in state.tasks[name].dependents:
            if further not in reached:
                reached[further] = None
                walk.append(further)
    return set(reached)


def _fault_of_gather(state: RequestState, growth: _Growth) -> str:
    """Items that do not say whose they are, and fewer of them than somebody needs."""
    if growth.kind != OVER or growth.task is None:
        return ""
    if any(spec.item_of != growth.task.spec.id for spec in growth.add):
        return f"not all tasks are items of {growth.task.spec.id}"
    for name in growth.waiting:
        task = state.tasks[name]
        if isinstance(task.spec.gather, AtLeast):
            count = len(set(task.spec.dependencies)) - 1 + len(growth.add)
            if count < task.spec.gather.at_least and growth.add:
                return f"{name} needs at least {task.spec.gather.at_least:,} to be done, and there are {count:,}"
    return ""
