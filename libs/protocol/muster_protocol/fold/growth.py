"""How a plan grows: what is still to grow, and what an `extended` entry means; growth_rules.py says what is allowed.
What came of the causes that a model is asked about is told in sentences for people.

A cause stands in `growing` until the first `extended` of the cause counts; while one does, the request is not complete.
What the log alone decides is judged here, by the owner before it writes and by everybody who reads: an entry that
breaks a rule counts as refused with that rule, so that every cause ends with its first entry.

over:<task>     The task is a template that goes over a list. It becomes the tasks `<id>-1` ... `<id>-n`, the items of
                the list: whoever depends on it depends on them too. With nothing to go over it is done, with `[]`. If
                that is refused, it fails.
spawned:<task>  The result of the task that counts asks for more tasks. The task is done, but whoever depends on it
                waits: first for this entry, then for what it spawned too (gathering.py says what they are given). If
                it is refused, the task is done all the same, and nobody waits for more.
failure:<task>  The task has failed for good, and something was skipped for it. Others may be added, and those that
                were never reserved may be dropped: they leave the plan, and their ids are not used again. The cause
                ends by itself if the task succeeds late or a person has it tried again. A task is one once.
review:<n>      All tasks have ended, and the review before this one added something. It may add tasks, which may
                depend on all that there is. Once it stands it stays, also if a late success lets a task wait again;
                but its entry is not to be written before all has ended once more.

A replacement and an item are as deep as the task that they come from, what is spawned is one deeper.
"""

from collections.abc import Sequence

from muster_protocol.counted import counted
from muster_protocol.fold.budget import settle
from muster_protocol.fold.gathering import may_lack, most_lacking, parts_of
from muster_protocol.fold.growth_rules import cause_of, fault_of
from muster_protocol.fold.moves import LOST, Cause, begin, move, release_dependents, skip_if_lost
from muster_protocol.fold.plans import connect, place
from muster_protocol.fold.state import FINAL, Entry, RequestState, TaskPhase, TaskState
from muster_protocol.messages import Extended, Failure
from muster_protocol.messages.growth import FAILURE, OVER, REVIEW, SPAWNED, kind_of

NAMED = 5  # tasks in one sentence
STILL_WAITS = (TaskPhase.WAITING, TaskPhase.SKIPPED)  # one that began without it does not wait for more


def pending_growth(state: RequestState) -> tuple[str, ...]:
    """The causes for which an `extended` is to be written; a review looks at results that are all there."""
    if not state.growing:
        return ()
    may_review = not state.open_tasks and len(state.growing) == 1
    return tuple(cause for cause in state.growing if may_review or kind_of(cause) != REVIEW)


def is_complete(state: RequestState) -> bool:
    """Whether there is nothing left to wait for."""
    return state.plan_entry is not None and state.open_tasks == 0 and not state.growing


def await_review(state: RequestState) -> None:
    """All tasks have ended: the results are to be looked at, if another round is left."""
    entry = state.plan_entry
    if entry is None or state.rounds >= entry.growth.rounds or state.is_reviewed or state.growing:
        return
    if state.answer is None and state.cancelled is None:
        state.growing[f"{REVIEW}:{state.rounds + 1}"] = ""


def extend(state: RequestState, _: Entry, body: Extended) -> None:
    """Let the plan grow by what a cause came to; the first entry of a cause ends it."""
    settle(state, body.cause)
    state.usage += body.usage
    if body.cause not in state.growing:
        return
    refused = body.refused or fault_of(state, body)
    task = cause_of(state, body.cause)
    del state.growing[body.cause]
    if kind_of(body.cause) in (REVIEW, FAILURE):
        state.grown += (body.model_copy(update={"refused": refused}),)
    if kind_of(body.cause) == REVIEW:
        state.rounds += 1
        state.is_reviewed = refused is not None or not body.add
    if refused is not None:
        _end_refused(state, task, refused)
        return
    _drop(state, body)
    if task is not None and task.phase is TaskPhase.GROWING:
        task.unfolded = len(body.add)  # its dependents count its items in its place
    added = _added(state, body, task)
    waiting = [] if task is None else _await_added(state, task, added)
    for new in added:
        skip_if_lost(state, new)
        begin(state, new)
    for dependent in waiting:
        skip_if_lost(state, dependent)
    if task is not None:
        _end(state, task)


def _end(state: RequestState, task: TaskState) -> None:
    """What a task was to give has all been recorded."""
    if task.phase is TaskPhase.GROWING:
        move(state, task, Cause.EXTENDED)
    elif task.is_spawning:
        task.is_spawning = False
        release_dependents(state, task)


def _end_refused(state: RequestState, task: TaskState | None, refused: Failure) -> None:
    """The plan does not grow: a list that nobody goes over is a failure, a task that spawned is done."""
    if task is None:
        return
    task.refused = refused
    if task.phase is TaskPhase.GROWING:
        task.reason = refused.message
        move(state, task, Cause.GROWTH_REFUSED)
    else:
        _end(state, task)


def _drop(state: RequestState, body: Extended) -> None:
    """Take tasks out of the plan; whoever waits for one of them goes too."""
    gone = [state.tasks.pop(name) for name in dict.fromkeys(body.drop)]
    for task in gone:
        name = task.spec.id
        state.dropped[name] = body.cause
        state.ready.pop(name, None)
        state.growing.pop(f"{OVER}:{name}", None)
        state.open_tasks -= task.phase not in FINAL
    needed = {name: None for task in gone for name in task.spec.dependencies if name in state.tasks}
    for name in needed:
        task = state.tasks[name]
        task.dependents = [each for each in task.dependents if each in state.tasks]


def _added(state: RequestState, body: Extended, cause: TaskState | None) -> list[TaskState]:
    """The new tasks, which know what of all that they wait for has ended."""
    assert state.plan_entry is not None
    kind = kind_of(body.cause)
    for spec in body.add:
        place(state, spec, state.plan_entry)
    state.open_tasks += len(body.add)
    added = [state.tasks[spec.id] for spec in body.add]
    for task in added:
        task.grown_by = body.cause
        if cause is not None:
            task.depth = cause.depth + (kind == SPAWNED)
            task.also = cause.also if kind == OVER else task.also  # an item waits for what its template does
        connect(state, task)
        for name in dict.fromkeys(task.spec.dependencies):
            needed = state.tasks[name]
            task.missing -= needed.is_given
            task.lost += needed.phase in LOST and may_lack(task, needed)
    return added


def _await_added(state: RequestState, cause: TaskState, added: Sequence[TaskState]) -> list[TaskState]:
    """Let whoever waits for a task wait for what it became or spawned, too, in its place. Nobody does if it failed."""
    if cause.phase is TaskPhase.FAILED:
        return []
    own = {new.spec.id for new in added}
    waiting = [state.tasks[name] for name in cause.dependents if name not in own]
    for dependent in waiting:
        if dependent.phase in STILL_WAITS:
            _await_also(state, dependent, cause, added)
    return waiting


def _await_also(state: RequestState, task: TaskState, cause: TaskState, added: Sequence[TaskState]) -> None:
    names = [new.spec.id for new in added]
    needs = list(dict.fromkeys(task.spec.dependencies))
    place_of = needs.index(cause.spec.id) + 1
    needs[place_of:place_of] = names
    task.spec = task.spec.model_copy(update={"dependencies": tuple(needs)})
    task.missing += len(added)
    if cause.is_spawning:
        task.also |= frozenset(names)
    for new in added:
        new.dependents.append(task.spec.id)
    task.may_lose = most_lacking(task, parts_of(state, task))


def growth_notes(state: RequestState) -> tuple[str, ...]:
    """What a review added, what took the place of a failed task, and why; a review that found nothing says nothing."""
    return tuple(note for grown in state.grown if (note := _note(grown)))


def replaced(state: RequestState) -> frozenset[str]:
    """The tasks that failed, and whose place others have taken: what they lost is no gap."""
    found = (_task_of(grown) for grown in state.grown if kind_of(grown.cause) != REVIEW and _ids_added(grown))
    return frozenset(name for name in found if name in state.tasks and state.tasks[name].phase is TaskPhase.FAILED)


def lacking(state: RequestState) -> tuple[TaskState, ...]:
    """The tasks that leave a gap: not done, unless others took their place, or without what they were to add."""
    made_good = replaced(state)
    return tuple(
        task
        for name, task in state.tasks.items()
        if task.not_added or (task.phase is not TaskPhase.DONE and name not in made_good)
    )


def _task_of(grown: Extended) -> str:
    return grown.cause.partition(":")[2]


def _ids_added(grown: Extended) -> tuple[str, ...]:
    return () if grown.refused is not None else tuple(spec.id for spec in grown.add)


def _note(grown: Extended) -> str:
    reason = grown.refused.message if grown.refused is not None else grown.reason
    why, added = f": {reason}" if reason else "", _ids_added(grown)
    if kind_of(grown.cause) == REVIEW:
        if grown.refused is not None:
            return f"the results were not reviewed{why}"
        return f"a review of the results added {counted(len(added), 'task')} ({_named(added)}){why}" if added else ""
    name = _task_of(grown)
    if not added:
        return f"nothing takes the place of {name}, which failed{why}"
    return f"{_named(added)} took the place of {_named((name, *grown.drop))}{why}"


def _named(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - NAMED} more" if len(tasks) > NAMED else ""
    return ", ".join(tasks[:NAMED]) + more
