"""How a plan grows: what is still to grow, which growth is allowed, and what an `extended` entry means.

A cause stands in `growing` until the first `extended` of the cause counts; while one does, the request is not complete.
What the log alone decides is judged here, by the owner before it writes and by everybody who reads: an entry that
breaks a rule counts as refused with that rule, so that every cause ends with its first entry.

over:<task>   The task is a template that goes over a list. It becomes the tasks `<id>-1` ... `<id>-n`, the items of the
              list: whoever depends on it depends on them too. With nothing to go over it is done, with `[]`. If that is
              refused, it fails.
"""

from collections.abc import Sequence

from muster_protocol.counted import counted
from muster_protocol.fold.gathering import may_lack, most_lacking, parts_of
from muster_protocol.fold.moves import Cause, begin, move, skip_if_lost
from muster_protocol.fold.plans import connect, place
from muster_protocol.fold.state import Entry, RequestState, TaskPhase, TaskState
from muster_protocol.messages import Extended, Failure
from muster_protocol.plan import MAX_DEPENDENCIES, AtLeast, TaskSpec, ordered

LOST = (TaskPhase.FAILED, TaskPhase.SKIPPED)
STILL_WAITS = (TaskPhase.WAITING, TaskPhase.SKIPPED)  # one that began without it does not wait for more


def pending_growth(state: RequestState) -> tuple[str, ...]:
    """The causes for which an `extended` is to be written."""
    return tuple(state.growing)


def is_complete(state: RequestState) -> bool:
    """Whether there is nothing left to wait for."""
    return state.plan_entry is not None and state.open_tasks == 0 and not pending_growth(state)


def extend(state: RequestState, _: Entry, body: Extended) -> None:
    """Let the plan grow by what a cause came to; the first entry of a cause ends it."""
    state.usage += body.usage
    if body.cause not in state.growing:
        return
    refused = body.refused or fault_of(state, body)
    task = state.tasks[state.growing.pop(body.cause)]
    if refused is not None:
        task.refused, task.reason = refused, refused.message
        move(state, task, Cause.GROWTH_REFUSED)
        return
    task.unfolded = len(body.add)
    added = _added(state, body.add)
    waiting = [state.tasks[name] for name in task.dependents]
    for dependent in waiting:
        if dependent.phase in STILL_WAITS:
            _await_also(state, dependent, task, added)
    for new in added:
        skip_if_lost(state, new)
        begin(state, new)
    for dependent in waiting:
        skip_if_lost(state, dependent)
    move(state, task, Cause.EXTENDED)


def fault_of(state: RequestState, body: Extended) -> Failure | None:
    """Which rule a growth breaks; None: it may be recorded."""
    assert state.plan_entry is not None
    limit = state.plan_entry.growth.tasks
    count = len(state.tasks) + len(body.add)
    if count > limit:
        more = f"{counted(len(body.add), 'task')} more would make {count:,}"
        return _refused("budget", f"{more}; the request may have {limit:,}: see limits.tasks and budget.tasks")
    cause = state.tasks[state.growing[body.cause]]
    fault = _fault_of_ids(state, body.add) or _fault_of_needs(state, cause, body.add)
    fault = fault or _fault_of_gather(state, cause, body)
    return _refused("logic", fault) if fault else None


def _refused(error_class: str, message: str) -> Failure:
    return Failure.model_validate({"class": error_class, "message": message})


def _fault_of_ids(state: RequestState, add: Sequence[TaskSpec]) -> str:
    seen: set[str] = set()
    for spec in add:
        if spec.id in state.tasks or spec.id in seen:
            return f"there is a task {spec.id} already"
        if spec.tag is None:
            return f"{spec.id} has no tag"
        seen.add(spec.id)
    return ""


def _fault_of_needs(state: RequestState, cause: TaskState, add: Sequence[TaskSpec]) -> str:
    """Dependencies on nobody, circles, and too many of them."""
    new = {spec.id: spec.dependencies for spec in add}
    needed = {name for needs in new.values() for name in needs if name not in new}
    if unknown := sorted(needed - state.tasks.keys()):
        return f"no task has the id {unknown[0]!r}"
    among = {name: tuple(need for need in needs if need in new) for name, needs in new.items()}
    if len(ordered(among)) < len(new) or not needed.isdisjoint(_behind(state, cause, needed)):
        return "tasks would wait for each other"
    count = sum(len(task.spec.dependencies) for task in state.tasks.values()) + sum(map(len, new.values()))
    count += len(new) * len(cause.dependents)
    return f"{count:,} dependencies in all; the most is {MAX_DEPENDENCIES:,}" if count > MAX_DEPENDENCIES else ""


def _behind(state: RequestState, cause: TaskState, needed: set[str]) -> set[str]:
    """What waits for a task, however indirectly; not looked up where nothing is needed that still has to be done."""
    if all(state.tasks[name].phase is TaskPhase.DONE or name == cause.spec.id for name in needed):
        return set()
    reached = dict.fromkeys(cause.dependents)
    for name in (walk := list(reached)):  # grows while it is read
        for further in state.tasks[name].dependents:
            if further not in reached:
                reached[further] = None
                walk.append(further)
    return set(reached)


def _fault_of_gather(state: RequestState, cause: TaskState, body: Extended) -> str:
    """Items that do not say whose they are, and fewer of them than somebody needs."""
    if any(spec.item_of != cause.spec.id for spec in body.add):
        return f"not all tasks are items of {cause.spec.id}"
    for name in cause.dependents:
        task = state.tasks[name]
        if isinstance(task.spec.gather, AtLeast):
            count = len(set(task.spec.dependencies)) - 1 + len(body.add)
            if count < task.spec.gather.at_least and body.add:
                return f"{name} needs at least {task.spec.gather.at_least:,} to be done, and there are {count:,}"
    return ""


def _added(state: RequestState, add: Sequence[TaskSpec]) -> list[TaskState]:
    """The new tasks, which know what of all that they wait for has ended."""
    assert state.plan_entry is not None
    for spec in add:
        place(state, spec, state.plan_entry)
    state.open_tasks += len(add)
    added = [state.tasks[spec.id] for spec in add]
    for task in added:
        connect(state, task)
        for name in dict.fromkeys(task.spec.dependencies):
            needed = state.tasks[name]
            task.missing -= needed.phase is TaskPhase.DONE
            task.lost += needed.phase in LOST and may_lack(task, needed)
    return added


def _await_also(state: RequestState, task: TaskState, cause: TaskState, added: Sequence[TaskState]) -> None:
    """Let whoever waits for a task wait for what it became, too."""
    needs = list(dict.fromkeys(task.spec.dependencies))
    place_of = needs.index(cause.spec.id) + 1
    needs[place_of:place_of] = [new.spec.id for new in added]
    task.spec = task.spec.model_copy(update={"dependencies": tuple(needs)})
    task.missing += len(added)
    for new in added:
        new.dependents.append(task.spec.id)
    task.may_lose = most_lacking(task, parts_of(state, task))
