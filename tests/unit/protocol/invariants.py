"""What is true of every state, whatever the log holds: the counts and sets agree with the tasks."""

from muster_protocol.fold import FINAL, RequestState, TaskPhase, TaskState, advance, next_timer
from muster_protocol.fold.gathering import may_lack
from muster_protocol.messages.growth import FAILURE, OVER, REVIEW, SPAWNED, kind_of
from muster_protocol.plan import AtLeast, ordered

CLOSE = 1e-6
KINDS = (OVER, SPAWNED, FAILURE, REVIEW)


def assert_consistent(state: RequestState) -> None:
    _assert_counts(state)
    _assert_growth(state)
    for task_id, task in state.tasks.items():
        needs = [state.tasks[need] for need in dict.fromkeys(task.spec.dependencies)]
        done = [needed.is_given for needed in needs]
        assert [attempt.number for attempt in task.attempts] == list(range(1, len(task.attempts) + 1))
        assert all(attempt.result is not None for attempt in task.attempts[:-1])
        assert len(task.attempts) <= task.max_attempts
        assert task.missing == done.count(False)
        assert task.lost == sum(is_lost(needed) and may_lack(task, needed) for needed in needs)
        if task.attempts or task.phase is TaskPhase.READY:
            assert has_enough(task, needs), f"{task_id} runs before enough of its dependencies are done"
        assert (task.phase is TaskPhase.DONE) == (task.success is not None or task.unfolded is not None)
        if task.success is not None:
            assert task.result is task.success is task.attempts[task.success.attempt - 1].result
            assert task.success.status.value == "done"
            assert task.reason is None
        assert (task_id in state.overtaken) == (task.success is not None and task.attempts[-1].result is None)
        if task.phase is TaskPhase.SKIPPED:
            assert cannot_begin(task, needs)
            assert task.reason is not None
            assert any(task.reason.startswith(f"{need} ") for need in task.spec.dependencies)
        if task.phase is TaskPhase.WAITING:
            assert not cannot_begin(task, needs)
            assert task.missing > task.lost or state.is_held, f"{task_id} waits for nothing"


def is_lost(needed: TaskState) -> bool:
    return needed.phase in (TaskPhase.FAILED, TaskPhase.SKIPPED)


def least_of(task: TaskState) -> int:
    """How many of its parts must be done; who spawned some of them is one that is."""
    if task.spec.gather is None and task.also:
        return 0
    return task.spec.gather.at_least if isinstance(task.spec.gather, AtLeast) else 1


def _assert_growth(state: RequestState) -> None:
    """What is to grow is said by the tasks; no limit is passed; nobody waits for himself or for what was dropped."""
    limits = state.plan_entry.growth if state.plan_entry else None
    by_kind = {kind: {state.growing[cause] for cause in state.growing if kind_of(cause) == kind} for kind in KINDS}
    tasks = state.tasks
    assert by_kind[OVER] == {name for name, task in tasks.items() if task.phase is TaskPhase.GROWING}
    assert by_kind[SPAWNED] == {name for name, task in tasks.items() if task.is_spawning}
    assert all(tasks[name].phase is TaskPhase.FAILED for name in by_kind[FAILURE])
    assert all(tasks[name].phase is TaskPhase.DONE for name in by_kind[SPAWNED])
    assert not state.dropped.keys() & tasks.keys()
    assert all(need in tasks for task in tasks.values() for need in task.spec.dependencies)
    assert all(name in tasks for task in tasks.values() for name in task.dependents)
    assert len(ordered({name: task.spec.dependencies for name, task in tasks.items()})) == len(tasks)
    if limits is not None:
        assert state.rounds + len(by_kind[REVIEW]) <= limits.rounds
        assert len(by_kind[FAILURE]) <= state.replacements <= limits.replacements
        assert all(task.depth <= limits.depth for task in tasks.values())
        grown = sum(bool(task.grown_by) for task in tasks.values())
        assert len(tasks) <= limits.tasks or not grown


def has_enough(task: TaskState, needs: list[TaskState]) -> bool:
    """Whether all that it cannot do without is done, and so many of the others as `gather` says."""
    parts = [needed for needed in needs if may_lack(task, needed) and needed.unfolded is None]
    done = sum(needed.phase is TaskPhase.DONE for needed in parts)
    most = least_of(task)
    others = (needed for needed in needs if not may_lack(task, needed))
    return all(needed.phase is TaskPhase.DONE for needed in others) and done >= min(most, len(parts))


def cannot_begin(task: TaskState, needs: list[TaskState]) -> bool:
    """Whether too much of what it needs has failed or was skipped."""
    parts = [needed for needed in needs if may_lack(task, needed) and needed.unfolded is None]
    most = least_of(task)
    is_short = sum(not is_lost(needed) for needed in parts) < min(most, len(parts))
    return is_short or any(is_lost(needed) and not may_lack(task, needed) for needed in needs)


def _assert_counts(state: RequestState) -> None:
    tasks = state.tasks.items()
    running = [task.attempts[-1] for _, task in tasks if task.phase is TaskPhase.RESERVED]
    assert state.in_flight == len(running)
    assert all(attempt.result is None for attempt in running)
    asides = [*running, *state.purposes.values()]
    assert state.tokens_set_aside == sum(aside.tokens or 0 for aside in asides)
    assert abs(state.usd_set_aside - sum(aside.usd or 0.0 for aside in asides)) < CLOSE
    assert state.open_tasks == sum(task.phase not in FINAL for _, task in tasks)
    assert set(state.ready) == {task_id for task_id, task in tasks if task.phase is TaskPhase.READY}
    assert set(state.awaiting_retry) == {task_id for task_id, task in tasks if task.phase is TaskPhase.AWAITING_RETRY}
    assert set(state.expired) <= {task_id for task_id, task in tasks if task.phase is TaskPhase.RESERVED}
    assert set(state.dispatch_unconfirmed) <= {task_id for task_id, task in tasks if task.phase is TaskPhase.RESERVED}


def known_at(state: RequestState, now: float) -> dict[str, object]:
    """Everything that is known at this time; two states that know the same decide the same."""
    advance(state, now)
    next_timer(state)
    known: dict[str, object] = {name: getattr(state, name) for name in state.__slots__}
    known["timers"] = sorted(timer for timer in state.timers if _is_live(state, timer))
    known["usd_set_aside"] = round(state.usd_set_aside, 6)
    for name in ("ready", "expired"):  # their order is that of becoming so, which a late reader cannot know
        known[name] = frozenset(getattr(state, name))
    return known


def _is_live(state: RequestState, timer: tuple[float, str, int]) -> bool:
    at, task_id, attempt = timer
    task = state.tasks[task_id]
    if task.phase is TaskPhase.DELAYED:
        return attempt == len(task.attempts) + 1
    is_running = task.phase is TaskPhase.RESERVED and attempt == len(task.attempts) and task_id not in state.expired
    return is_running and at >= task.attempts[-1].expiry
