"""Where a request stands, in one sentence: what it waits for, or why it ended as it did. Pure."""

from collections.abc import Collection

from muster_protocol.fold import RequestState, TaskState, TaskStatus
from muster_protocol.messages import Answer, AnswerStatus
from muster_protocol.plan import TaskSpec

NAMES = 3  # tasks that are named before the rest is counted


def explain(state: RequestState, now: float, live_tags: Collection[str] | None) -> str:
    """One sentence. `live_tags` are those that a live worker serves now; None when that is not known."""
    if state.answer is not None:
        return _ended(state, state.answer)
    if state.deadline is not None and now > state.deadline:
        late = now - state.deadline
        return f"stuck: its deadline passed {late:.0f} s ago and {_owner(state)} has not answered it"
    if state.cancelled is not None:
        return f"ending: {_cancelled(state)}"
    if state.owner is None:
        return _unowned(state)
    if state.plan_entry is None:
        return f"planning: {_owner(state)} has taken it and makes a plan"
    return _unserved(state, live_tags) or _waiting(state, now)


def cause(task_id: str, task: TaskState) -> str:
    """Why a task failed or was skipped."""
    reason = _short(task.reason or "no reason given")
    if task.status is TaskStatus.SKIPPED:
        return f"{task_id} was skipped because {reason}"
    tries = len(task.attempts)
    after = f" after {tries} attempts" if tries > 1 else ""
    return f"{task_id} failed{after}: {reason}"


def unserved_tag(spec: TaskSpec, live_tags: Collection[str]) -> str | None:
    """The tag of a task that nobody serves, if there is one."""
    for tag in (spec.tag, *spec.match_all):
        if tag is not None and tag not in live_tags:
            return tag
    if spec.match_some and not set(spec.match_some) & set(live_tags):
        return " or ".join(spec.match_some)
    return None


def _ended(state: RequestState, answer: Answer) -> str:
    match answer.status:
        case AnswerStatus.DONE:
            return f"done in {answer.seconds:.1f} s"
        case AnswerStatus.CANCELLED:
            return f"cancelled: {_cancelled(state)}"
        case AnswerStatus.PARTIAL | AnswerStatus.FAILED:
            return f"{answer.status.value}: {_why(state, answer)}"


def _why(state: RequestState, answer: Answer) -> str:
    failed = [cause(task_id, task) for task_id, task in state.tasks.items() if task.status is TaskStatus.FAILED]
    if failed:
        return _few(failed)
    unfinished = [task_id for task_id, task in state.tasks.items() if task.status is not TaskStatus.DONE]
    if unfinished:
        ended = _short(answer.gaps[0]) if answer.gaps and not answer.gaps[0].startswith(unfinished[0]) else "it ended"
        return f"{ended} before {_few(unfinished)} {'was' if len(unfinished) == 1 else 'were'} done"
    return _short(answer.gaps[0] if answer.gaps else answer.text)


def _cancelled(state: RequestState) -> str:
    if state.cancelled is None:
        return "somebody cancelled it"
    return state.cancelled.reason or f"by {state.cancelled.by}"


def _unowned(state: RequestState) -> str:
    if state.term == 0:
        return "waiting: no supervisor has taken it"
    return "waiting: its supervisor stopped and handed it back; no other has taken it"


def _unserved(state: RequestState, live_tags: Collection[str] | None) -> str | None:
    if live_tags is None:
        return None
    for task_id, task in state.tasks.items():
        if task.status not in (TaskStatus.RUNNING, TaskStatus.READY, TaskStatus.DELAYED):
            continue
        tag = unserved_tag(task.spec, live_tags)
        if tag is not None:
            return f"stuck: {task_id} waits for tag '{tag}', which no live worker serves"
    return None


def _waiting(state: RequestState, now: float) -> str:
    done = sum(task.status is TaskStatus.DONE for task in state.tasks.values())
    so_far = f"{done} of {len(state.tasks)} tasks done"
    running = [task_id for task_id, task in state.tasks.items() if task.status is TaskStatus.RUNNING]
    if running:
        return f"running: {so_far}, at work on {_few(running)}"
    for task_id, task in state.tasks.items():
        if task.status in (TaskStatus.DELAYED, TaskStatus.STRUCK):
            wait = max(0.0, task.not_before - now)
            return f"running: {so_far}, {task_id} is tried again in {wait:.1f} s after: {_short(task.reason or '')}"
    return f"running: {so_far}, {_owner(state)} decides what is next"


def _owner(state: RequestState) -> str:
    return f"supervisor-{state.owner}" if state.owner else "nobody"


def _few(names: list[str]) -> str:
    if len(names) <= NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:NAMES])} and {len(names) - NAMES} more"


def _short(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
