"""How a request stands, as a model is shown it that may let the plan grow. Pure."""

from collections import Counter
from collections.abc import Collection

from muster_agent.models.standing import ReplaceBrief, ReviewBrief, Room, Standing, TaskShown
from muster_agent.team.schema import Team
from muster_protocol.counted import counted
from muster_protocol.fold import FINAL, RequestState, TaskPhase, TaskState, left_of
from muster_supervisor.planning.briefing import Seen, away_of, live_cards

MAX_SHOWN = 200  # tasks: of more, those that say least are only counted
MAX_MORE = 20  # tasks of one reply: who needs more makes a map of them
_ENDS, _OTHERS = 2, 3
_PLACES = {TaskPhase.FAILED: 0, TaskPhase.SKIPPED: 1}  # what is shown first where not all can be


def review_brief(state: RequestState, team: Team, seen: Seen, contradictions: tuple[str, ...]) -> ReviewBrief:
    """What a model is asked after a round."""
    assert state.plan_entry is not None
    standing = _standing(state, team, seen, (), contradictions)
    return ReviewBrief(standing, number=state.rounds + 1, rounds=state.plan_entry.growth.rounds)


def replace_brief(state: RequestState, team: Team, seen: Seen, failed: str) -> ReplaceBrief:
    """What a model is asked when a task has failed for good."""
    task, skipped = state.tasks[failed], skipped_for(state, failed)
    results = [attempt.result for attempt in task.attempts]
    errors = [f"{found.error.error_class}: {found.error.message}" for found in results if found and found.error]
    if task.reason and not any(task.reason in error for error in errors):
        errors.append(task.reason)  # why there was no further attempt
    tried = dict.fromkeys(found.role for found in results if found and found.role)
    return ReplaceBrief(
        _standing(state, team, seen, (failed, *skipped), ()),
        failed,
        errors=tuple(errors),
        tried=tuple(tried) or ((task.tag,) if task.tag else ()),
        skipped=skipped,
    )


def skipped_for(state: RequestState, failed: str) -> tuple[str, ...]:
    """The tasks that were skipped since this one failed, however indirectly, in the order of the plan."""
    reached = {failed}
    left = [failed]
    while left:
        for name in state.tasks[left.pop()].dependents:
            if name not in reached and state.tasks[name].phase is TaskPhase.SKIPPED:
                reached.add(name)
                left.append(name)
    return tuple(name for name in state.tasks if name in reached and name != failed)


def room_of(state: RequestState, seconds: float | None = None) -> Room:
    """How far the plan may still grow."""
    assert state.plan_entry is not None
    left = left_of(state)
    count = max(0, state.plan_entry.growth.tasks - len(state.tasks))
    return Room(min(MAX_MORE, count), left.tokens, left.usd, seconds)


def _standing(
    state: RequestState, team: Team, seen: Seen, first: Collection[str], contradictions: tuple[str, ...]
) -> Standing:
    entry = state.plan_entry
    assert entry is not None
    shown = _most_telling(state, first)
    roles = live_cards(team, seen)
    return Standing(
        text=entry.text or entry.plan.goal,
        tasks=tuple(_shown(state.tasks[name]) for name in state.tasks if name in shown),
        roles=roles,
        room=room_of(state, seen.seconds),
        goal=entry.plan.goal,
        away=away_of(roles, seen),
        persona=team.supervisor.persona,
        guidelines=team.supervisor.guidelines,
        today=seen.today,
        notes=tuple(note.reason for note in state.notes),
        contradictions=contradictions,
        not_shown=_counted([task for name, task in state.tasks.items() if name not in shown]),
    )


def _most_telling(state: RequestState, first: Collection[str]) -> set[str]:
    """The tasks that are shown: these, then what is not done, then what the answer is made of, then the rest."""
    if len(state.tasks) <= MAX_SHOWN:
        return set(state.tasks)
    wanted = set(first)

    def place(name: str) -> int:
        task = state.tasks[name]
        return -1 if name in wanted else _PLACES.get(task.phase, _OTHERS if task.dependents else _ENDS)

    return set(sorted(state.tasks, key=place)[:MAX_SHOWN])


def _shown(task: TaskState) -> TaskShown:
    is_new = task.description != task.spec.description
    return TaskShown(
        task.spec,
        status=task.outcome()["status"].value if task.phase in FINAL else "not done yet",
        role=task.role,
        description=task.description if is_new else "",
        attempts=len(task.attempts),
        output=task.output,
        reason=task.reason or "",
    )


def _counted(left_out: list[TaskState]) -> str:
    """What is said of the tasks that are not shown."""
    if not left_out:
        return ""
    counts = Counter(task.phase.value for task in left_out)
    return f"{counted(len(left_out), 'task')} not shown: {', '.join(f'{n:,} {phase}' for phase, n in counts.items())}."
