"""Decides what to do next about a request: state and time in, steps out; no clock, no randomness, no I/O.

`due` changes one thing in the state: `advance` moves the timers that have run out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypedDict

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import (
    RequestState,
    TaskPhase,
    TaskState,
    advance,
    is_complete,
    last_moment,
    left_of,
    next_timer,
    pending_growth,
)
from muster_protocol.fold.budget import UNLIMITED
from muster_protocol.fold.growth import lacking
from muster_protocol.fold.moves import LEAST_SECONDS
from muster_protocol.fold.people import why_cancelled
from muster_protocol.messages import AnswerStatus, Failure, Reservation
from muster_protocol.questions import is_approval_asked
from muster_protocol.retry import is_refined, retry_delay, retry_of


@dataclass(frozen=True, slots=True)
class MakePlan:
    """Make the plan: there is none yet."""


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Ask people whether the plan is to be carried out."""


@dataclass(frozen=True, slots=True)
class TakeDefault:
    """Record what a question says for the case that nobody replied in time."""

    question: str


@dataclass(frozen=True, slots=True)
class DispatchTasks:
    """Reserve and publish these attempts."""

    attempts: tuple[Reservation, ...]


@dataclass(frozen=True, slots=True)
class Refine:
    """Write a better description for the next attempt of a failed task, knowing the error."""

    attempt_id: AttemptId
    not_before: float


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Let the next attempt of a failed task be what the last one was: no model is called."""

    attempt_id: AttemptId
    not_before: float


@dataclass(frozen=True, slots=True)
class Expire:
    """Record that an attempt failed: no result came by its timeout."""

    attempt_id: AttemptId


@dataclass(frozen=True, slots=True)
class Grow:
    """Record by what the plan grows, or why it does not."""

    cause: str


@dataclass(frozen=True, slots=True)
class GiveAnswer:
    """Write the answer: nothing is left to wait for, or there is no time or money left."""

    status: AnswerStatus
    reason: str
    is_plain: bool = False  # composed without a model, which may be what fails or what somebody will not wait for
    cause: str = ""  # the class of what ended the request, for `error.type`; empty: what ended its tasks


Step = MakePlan | AskApproval | TakeDefault | DispatchTasks | Grow | Refine | TryAgain | Expire | GiveAnswer


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one attempt may use when the request has a budget, and how many may be out at once."""

    tokens: int = 20_000
    usd: float = 0.5
    window: int | None = None  # None: what the plan's entry says


ALLOWANCE = Allowance()
IsHeld = Callable[[TaskState], bool]  # nobody who can do the task may be given anything now


def due(state: RequestState, now: float, allowance: Allowance = ALLOWANCE, is_held: IsHeld | None = None) -> list[Step]:
    """What to do now. The same state and time always give the same steps. What is held is not given out."""
    if state.answer is not None:
        return []
    advance(state, now)
    first = _first(state, now)
    if first is not None:
        return first
    steps: list[Step] = [Expire(_last_attempt(state, task_id)) for task_id in state.expired]
    steps.extend(Grow(cause) for cause in pending_growth(state))
    attempts = tuple(_dispatchable(state, now, allowance, is_held))
    if attempts:
        steps.append(DispatchTasks(attempts))
    steps.extend(_retries(state, now))
    if not steps and state.ready and not state.in_flight and not _is_any_held(state, is_held):
        return [GiveAnswer(status_of(state), "the budget is used up", cause="budget")]
    return steps


def _first(state: RequestState, now: float) -> list[Step] | None:
    """What comes before all work: the end, people, the plan. None: the tasks are to be worked on."""
    late = [name for name in state.open_questions if state.questions[name].question.until <= now]
    ending = None if late and state.cancelled is None else _ending(state, now)
    if ending is not None:
        return [ending]
    if late:
        return [TakeDefault(name) for name in late]
    if state.plan_entry is None:
        return [MakePlan()]
    if state.is_held:
        return [] if is_approval_asked(state) else [AskApproval()]
    return None


def next_time(state: RequestState) -> float | None:
    """When `due` may next return something new although no entry comes."""
    times = [time for time in (next_timer(state), last_moment(state)) if time is not None]
    times += [state.questions[name].question.until for name in state.open_questions]
    return min(times, default=None)


def status_of(state: RequestState) -> AnswerStatus:
    """The status of an answer that is given now."""
    if not any(task.phase is TaskPhase.DONE for task in state.tasks.values()):
        return AnswerStatus.FAILED
    return AnswerStatus.PARTIAL if lacking(state) else AnswerStatus.DONE


def timed_out(task_id: str, timeout_seconds: float) -> Failure:
    """The failure of an attempt that gave no result in time."""
    return Failure(error_class="timeout", message=f"{task_id} gave no result within {timeout_seconds:g} s")


def _ending(state: RequestState, now: float) -> GiveAnswer | None:
    """The answer, if the request was cancelled, is complete, or has no time left."""
    if state.cancelled is not None:
        cause = "cancelled" if state.cancelled.decision == "cancel" else "rejected"
        return GiveAnswer(AnswerStatus.CANCELLED, why_cancelled(state.cancelled), is_plain=True, cause=cause)
    if is_complete(state):
        return GiveAnswer(status_of(state), "")
    moment = last_moment(state)
    if moment is not None and now >= moment:
        return GiveAnswer(status_of(state), "the deadline was reached", cause="deadline")
    return None


def _last_attempt(state: RequestState, task_id: str) -> AttemptId:
    return state.attempt_id(task_id, len(state.tasks[task_id].attempts))


def _retries(state: RequestState, now: float) -> Iterator[Refine | TryAgain]:
    """One for each failed task that may be tried again."""
    assert state.plan_entry is not None
    for task_id in state.awaiting_retry:
        task = state.tasks[task_id]
        attempt = state.attempt_id(task_id, len(task.attempts) + 1)
        error = task.result.error if task.result else None
        retry = retry_of(task.spec, state.plan_entry.retry, task.attempts[-1].role)
        step = Refine if is_refined(error, retry) else TryAgain
        not_before = max(now + retry_delay(attempt, error, retry), (error and error.limited_until) or 0.0)
        yield step(attempt, not_before)


def _is_any_held(state: RequestState, is_held: IsHeld | None) -> bool:
    return is_held is not None and any(is_held(state.tasks[task_id]) for task_id in state.ready)


def _dispatchable(
    state: RequestState, now: float, allowance: Allowance, is_held: IsHeld | None
) -> Iterator[Reservation]:
    """The next attempts of ready tasks, as many as fit: tasks in flight, tokens and money."""
    plan_entry = state.plan_entry
    assert plan_entry is not None
    left, moment = left_of(state), last_moment(state)
    most = plan_entry.in_flight if allowance.window is None else min(plan_entry.in_flight, allowance.window)
    free = state.ready if is_held is None else (one for one in state.ready if not is_held(state.tasks[one]))
    for task_id in islice(free, max(0, most - state.in_flight)):
        if left.is_used_up:
            return
        tokens, usd = None, None
        if left is not UNLIMITED:
            granted = left.grant(allowance.tokens, allowance.usd)
            tokens = None if left.tokens is None else granted.tokens
            usd = None if left.usd is None else granted.usd
            left = left.without(tokens, usd)
        task = state.tasks[task_id]
        yield Reservation(
            task_id=task_id,
            attempt=len(task.attempts) + 1,
            **_until(moment, task.spec.timeout_seconds or plan_entry.timeout_seconds, now),
            tokens=tokens,
            usd=usd,
        )


class Timeout(TypedDict):
    """How long an attempt may take, and how long it might if the request did not end sooner."""

    timeout_seconds: float
    wanted_seconds: float | None


def within_request(state: RequestState, seconds: float, now: float) -> Timeout:
    """The attempt's timeout, but no longer than the request itself has."""
    return _until(last_moment(state), seconds, now)


def _until(moment: float | None, seconds: float, now: float) -> Timeout:
    if moment is None or seconds <= moment - now:
        return {"timeout_seconds": seconds, "wanted_seconds": None}
    return {"timeout_seconds": max(LEAST_SECONDS, moment - now), "wanted_seconds": seconds}
