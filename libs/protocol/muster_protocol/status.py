"""Where a request and its tasks stand, and why: status and reason as values, for the API and the command line alike.

The words are in `status_words.py`; which of them applies is computed here.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from muster_protocol.attempt_id import AttemptId
from muster_protocol.counted import counted, few
from muster_protocol.fold.growth import is_complete
from muster_protocol.fold.people import why_cancelled
from muster_protocol.fold.state import FINAL, RequestState, TaskPhase, TaskState
from muster_protocol.messages import Answer, AnswerStatus, Failure, Progress
from muster_protocol.messages.growth import origin_text
from muster_protocol.questions import is_asking, question_of, waits_for_reply
from muster_protocol.sender import shown_name
from muster_protocol.status_words import RequestStatus, TaskStatus, open_status
from muster_protocol.workers.breaker import Breaker
from muster_protocol.workers.held import held_text, waits_text
from muster_protocol.workers.signs import Signs
from muster_protocol.workers.unserved import unserved_tag

MAX_REASON = 200  # characters of a reason: it is read on one line
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_LIBRARIES = ("/site-packages/", "/lib/python", "<frozen ")  # a frame of the role itself is more useful
_OURS = re.compile(r"/muster_(?:agent|bus|protocol|worker)/")
_STATUS = {
    TaskPhase.WAITING: TaskStatus.WAITING,
    TaskPhase.READY: TaskStatus.READY,
    TaskPhase.AWAITING_RETRY: TaskStatus.RETRYING,
    TaskPhase.DELAYED: TaskStatus.RETRYING,
    TaskPhase.GROWING: TaskStatus.READY,
    TaskPhase.DONE: TaskStatus.DONE,
    TaskPhase.FAILED: TaskStatus.FAILED,
    TaskPhase.SKIPPED: TaskStatus.SKIPPED,
}

_SOON = {
    TaskPhase.READY: "to be dispatched when there is room and budget",
    TaskPhase.GROWING: "the plan is to grow by what it gives",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the log does not say: the time, whose start was seen, which tags live workers serve (None: unknown)."""

    now: float
    started: Mapping[AttemptId, str] = field(default_factory=dict[AttemptId, str])  # and which worker it was
    live_tags: Collection[str] | None = None
    signs: Signs | None = None  # of the workers; None: not known
    breakers: Mapping[str, Breaker] = field(default_factory=dict[str, Breaker])  # by role, as far as they are known
    waits: Mapping[AttemptId, Progress] = field(default_factory=dict[AttemptId, Progress])  # for a provider's limit


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a request stands, and one sentence for people."""

    status: RequestStatus
    reason: str
    is_stalled: bool = False  # it waits for something that may never come: a supervisor, a worker with a tag

    def __str__(self) -> str:
        return f"{self.status.value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """Where a task stands, and one sentence for people."""

    status: TaskStatus
    reason: str


def explain(state: RequestState, seen: Seen) -> Standing:
    """Where a request stands."""
    if state.answer is not None:
        return Standing(RequestStatus(state.answer.status.value), _ending(state, state.answer))
    status = _open_status(state)
    if state.deadline is not None and seen.now > state.deadline:
        late = seen.now - state.deadline
        who = f"{_owner(state)} has not answered it" if state.owner else "no supervisor has it"
        return Standing(status, f"its deadline passed {late:.0f} s ago and {who}", True)
    lacking = _unwell(state, seen) or _unserved(state, seen) if status is RequestStatus.RUNNING else None
    is_stalled = status is RequestStatus.QUEUED or lacking is not None
    return Standing(status, lacking or _open_reason(state, status, seen), is_stalled)


def explain_task(state: RequestState, task: TaskState, seen: Seen) -> TaskStanding:
    """Where a task stands, and where it comes from if the plan grew by it."""
    standing = _standing(state, task, seen)
    if not task.grown_by:
        return standing
    return TaskStanding(standing.status, f"{standing.reason}; {origin_text(task.grown_by)}")


def _standing(state: RequestState, task: TaskState, seen: Seen) -> TaskStanding:
    """Of an answered request, what its row in the answer says."""
    if state.answer is not None:
        outcome = task.outcome()
        return TaskStanding(outcome["status"], outcome["reason"] or work_text(task))
    if (asked := question_of(state, task.spec.id)) is not None:
        return TaskStanding(TaskStatus.WAITING_FOR_PERSON, waits_for_reply(asked, seen.now))
    if task.phase is TaskPhase.RESERVED:
        return _dispatched(state, task, seen)
    return TaskStanding(_STATUS[task.phase], _task_reason(state, task, seen))


def _task_reason(state: RequestState, task: TaskState, seen: Seen) -> str:
    if task.phase is TaskPhase.WAITING:
        needed = [state.tasks[name] for name in task.spec.dependencies]
        missing = [each.spec.name for each in needed if each.phase not in FINAL or each.is_spawning]
        if state.is_held and not missing:
            return "for the approval of the plan"
        return f"for {few(missing)}"
    if task.phase in _SOON:
        return _held(task, seen) or _SOON[task.phase]
    if task.phase is TaskPhase.DONE:
        return work_text(task)
    if task.phase in (TaskPhase.AWAITING_RETRY, TaskPhase.DELAYED):
        return f"in {max(0.0, task.not_before - seen.now):.1f} s after: {_short(task.reason or '')}"
    return task.reason or "no reason given"


def _held(task: TaskState, seen: Seen) -> str:
    """Why a ready task is not given out although there is room; empty: it is."""
    is_ready = task.phase is TaskPhase.READY and bool(seen.breakers)
    return held_text(task, seen.breakers, seen.signs, seen.now) if is_ready else ""


def work_text(task: TaskState) -> str:
    """What a task was that is done."""
    if task.unfolded is None:
        return f"{task.seconds:g} s of work"
    return f"went over {counted(task.unfolded, 'item')} of {task.spec.over}"


def failure_text(failure: Failure) -> str:
    """Why an attempt failed and where, on one line: `ConnectionError: no route (roles.py:12)`."""
    return f"{_short(failure.message)}{place_of(failure.stack)}"


def place_of(stack: str | None) -> str:
    """The file and line of a failure, ` (roles.py:12)`; nothing without a stack."""
    frames: list[tuple[str, str]] = _FRAME.findall(stack or "")
    if not frames:
        return ""
    own = [frame for frame in frames if is_own_code(frame[0])]
    path, line = (own or frames)[-1]
    return f" ({path.rpartition('/')[2]}:{line})"


def is_own_code(path: str) -> bool:
    """Whether a file belongs to the team: neither to a library nor to Muster."""
    return not any(library in path for library in _LIBRARIES) and _OURS.search(path) is None


def _open_status(state: RequestState) -> RequestStatus:
    has_plan = state.plan_entry is not None
    is_ending = state.cancelled is not None or is_complete(state)
    has_owner, asks = state.owner is not None, is_asking(state)
    return open_status(has_owner=has_owner, has_plan=has_plan, is_ending=is_ending, is_asking=asks)


def _open_reason(state: RequestState, status: RequestStatus, seen: Seen) -> str:
    if status is RequestStatus.WAITING_FOR_PERSON:
        return _asking(state, seen)
    if status is RequestStatus.QUEUED:
        before = "its supervisor stopped and handed it back; no other" if state.term else "no supervisor"
        return f"{before} has taken it"
    if state.cancelled is not None:
        return f"cancelled {_by_whom(state)}" if state.cancelled.decision == "cancel" else _by_whom(state)
    if status is RequestStatus.PLANNING:
        return f"{_owner(state)} has taken it and makes a plan"
    if status is RequestStatus.ANSWERING:
        return f"{_owner(state)} composes the answer"
    return _progress(state, seen)


def _asking(state: RequestState, seen: Seen) -> str:
    asked = next((state.questions[name] for name in state.open_questions), None)
    if asked is None:
        return "its plan is to be approved; the question is about to be asked"
    nobody = "" if state.owner else "; no supervisor has it now, a reply is kept until one does"
    return f"{waits_for_reply(asked, seen.now)}{nobody}"


def _dispatched(state: RequestState, task: TaskState, seen: Seen) -> TaskStanding:
    number, why = len(task.attempts), task.attempts[-1].why
    again = (f", attempt {number}" if number > 1 else "") + (f"; chosen: {why}" if why else "")
    attempt = state.attempt_id(task.spec.id, number)
    if attempt in seen.started or attempt in seen.waits:
        trouble = _trouble(state, task, seen) or waits_text(seen.waits.get(attempt), seen.now)
        return TaskStanding(TaskStatus.RUNNING, f"{trouble or 'a worker has started it'}{again}")
    tag = None if seen.live_tags is None else unserved_tag(task, seen.live_tags)
    if tag is not None:
        return TaskStanding(TaskStatus.QUEUED, f"no live worker serves the tag '{tag}'{again}")
    silent = _trouble(state, task, seen)
    reason = f"no worker has said that it started; {silent}" if silent else "no worker has said that it started"
    return TaskStanding(TaskStatus.QUEUED, f"dispatched, {reason}{again}")


def _ending(state: RequestState, answer: Answer) -> str:
    match answer.status:
        case AnswerStatus.DONE:
            return f"answered in {answer.seconds:.1f} s"
        case AnswerStatus.CANCELLED:
            return _by_whom(state)
        case AnswerStatus.PARTIAL | AnswerStatus.FAILED:
            return _cause(state, answer)


def _cause(state: RequestState, answer: Answer) -> str:
    failed = [_failure(task) for task in state.tasks.values() if task.phase is TaskPhase.FAILED]
    if failed:
        return few(failed)
    unfinished = [task.spec.name for task in state.tasks.values() if task.phase is not TaskPhase.DONE]
    if unfinished:
        ended = _short(answer.reason) if answer.reason else "it ended"
        return f"{ended} before {few(unfinished)} {'was' if len(unfinished) == 1 else 'were'} done"
    return _short(answer.gaps[0] if answer.gaps else answer.text)


def _failure(task: TaskState) -> str:
    tries = len(task.attempts)
    after = f" after {counted(tries, 'attempt')}" if tries > 1 else ""
    return f"{task.spec.name} failed{after}: {_short(task.reason or 'no reason given')}"


def _by_whom(state: RequestState) -> str:
    if state.cancelled is None:
        return "by somebody"
    if state.cancelled.decision != "cancel":
        return why_cancelled(state.cancelled)
    return f"by {state.cancelled.by}" + (f": {_short(state.cancelled.reason)}" if state.cancelled.reason else "")


def _unwell(state: RequestState, seen: Seen) -> str | None:
    """The first task whose worker is gone or silent, and when it is tried again."""
    for task in state.tasks.values():
        trouble = _trouble(state, task, seen) if task.phase is TaskPhase.RESERVED else None
        if trouble is not None:
            tag = None if seen.live_tags is None else unserved_tag(task, seen.live_tags)
            return f"{task.spec.name}: {trouble}" + ("" if tag is None else f"; no live worker serves the tag '{tag}'")
    return None


def _trouble(state: RequestState, task: TaskState, seen: Seen) -> str | None:
    """What is wrong with the worker of a dispatched task; before its start is seen, with one that may have it."""
    if seen.signs is None:
        return None
    worker = seen.started.get(state.attempt_id(task.spec.id, len(task.attempts)))
    if worker is not None:
        return seen.signs.trouble(worker)
    silent = seen.signs.silent_for(task.queue)
    return seen.signs.trouble(silent[0].name) if silent else None


def _unserved(state: RequestState, seen: Seen) -> str | None:
    if seen.live_tags is None:
        return None
    for task in state.tasks.values():
        if task.phase in (TaskPhase.RESERVED, TaskPhase.READY, TaskPhase.DELAYED):
            tag = unserved_tag(task, seen.live_tags)
            if tag is not None:
                return f"{task.spec.name} waits for tag '{tag}', which no live worker serves"
    return None


def _progress(state: RequestState, seen: Seen) -> str:
    done = sum(task.phase is TaskPhase.DONE for task in state.tasks.values())
    so_far = f"{done} of {counted(len(state.tasks), 'task')} done"
    dispatched = [task for task in state.tasks.values() if task.phase is TaskPhase.RESERVED]
    if dispatched:
        by_status: dict[TaskStatus, list[str]] = {}
        for task in dispatched:
            by_status.setdefault(_dispatched(state, task, seen).status, []).append(task.spec.name)
        parts = [f"{few(names)} {status.value}" for status, names in by_status.items()]
        return f"{so_far}, {', '.join(parts)}"
    for task in state.tasks.values():
        if task.phase in (TaskPhase.DELAYED, TaskPhase.AWAITING_RETRY):
            wait = max(0.0, task.not_before - seen.now)
            return f"{so_far}, {task.spec.name} is tried again in {wait:.1f} s after: {_short(task.reason or '')}"
    if state.growing:
        return f"{so_far}, the plan may grow: {few(list(state.growing))}"
    waiting = (state.tasks[one] for one in state.ready)
    held = next((f"{task.spec.name}: {text}" for task in waiting if (text := _held(task, seen))), None)
    return f"{so_far}, {held or f'{_owner(state)} decides what is next'}"


def _owner(state: RequestState) -> str:
    return shown_name("supervisor", state.owner) if state.owner else "nobody"


def _short(text: str, limit: int = MAX_REASON) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
