"""From the log and the events of a request to its timeline: values in, values out."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from muster_client.timeline.critical import marked
from muster_client.timeline.event_notes import StoredEvent, by_attempt, with_records
from muster_client.timeline.log_notes import LogNotes, Take, noted
from muster_client.timeline.runs import AttemptPlace, Run, run_steps
from muster_client.timeline.steps import Step, StepStatus, Timeline, Totals, What
from muster_client.timeline.task_steps import task_steps
from muster_protocol.conflict import Conflict
from muster_protocol.fold import Entry, RequestState, TaskPhase
from muster_protocol.fold.questions import Asked
from muster_protocol.messages import Answer, AnswerStatus, Extended
from muster_protocol.questions import decision_as_json
from muster_protocol.status import Seen, Standing, explain

_ORDER = {what: place for place, what in enumerate(What)}
_STATUS = {
    AnswerStatus.DONE: StepStatus.DONE,
    AnswerStatus.PARTIAL: StepStatus.DONE,
    AnswerStatus.FAILED: StepStatus.FAILED,
    AnswerStatus.CANCELLED: StepStatus.CANCELLED,
}


def timeline(
    request_id: str,
    entries: Iterable[Entry],
    events: Iterable[StoredEvent],
    *,
    now: float,
    asked_at: float | None = None,
    conflicts: Iterable[Conflict] = (),
) -> Timeline:
    """All steps of a request. `asked_at` is when it was stored, if that is known; the answer tells it as well."""
    notes = noted(request_id, entries)
    said = with_records(by_attempt(events), conflicts, now)
    state, answer = notes.state, notes.state.answer
    if asked_at is None and answer is not None and notes.answered_at is not None:
        asked_at = notes.answered_at - max(0.0, answer.seconds)
    begin = min(time for time in (asked_at, notes.first_time, now) if time is not None)
    inner = [*_request_steps(notes, begin), *(step for task in state.tasks for step in task_steps(notes, task, said))]
    inner += [step for place, run in _strays(notes) for step in run_steps(place, [run])]
    inner = [_within(step, begin) for step in inner]
    last = max([notes.last_time, *(step.end or step.begin for step in inner)], default=begin)
    end = max(begin, last) if answer is not None else max(begin, last, now)
    running = [s for s in inner if s.what is What.ATTEMPT and s.status is StepStatus.OPEN]
    started = {state.attempt_id(step.task, step.attempt): step.worker for step in running}
    standing = explain(state, Seen(now, started))
    whole = _whole(notes, standing, begin)
    steps, path = marked(state, sorted(inner, key=_order), end)
    return Timeline(state, standing, begin, end, (whole, *steps), path, _totals(whole, steps, state, end))


def _order(step: Step) -> tuple[float, int, str, int, int, str]:
    return (step.begin, _ORDER[step.what], step.task, step.attempt, step.delivery, step.worker)


def _within(step: Step, begin: float) -> Step:
    """No step begins before the request did, whatever an event claims."""
    if step.begin >= begin:
        return step
    return replace(step, begin=begin, end=None if step.end is None else max(begin, step.end))


def _whole(notes: LogNotes, standing: Standing, begin: float) -> Step:
    """The request as one step."""
    state, answer = notes.state, notes.state.answer
    text = state.plan_entry.text if state.plan_entry else ""
    details: dict[str, Any] = {"text": text, "team": state.team, "deadline": state.deadline}
    if answer is None or notes.answered_at is None:
        return Step(What.REQUEST, begin, None, StepStatus.OPEN, details=details)
    return Step(
        What.REQUEST,
        begin,
        max(begin, notes.answered_at),
        _STATUS[answer.status],
        error="" if answer.status is AnswerStatus.DONE else standing.reason,
        details=details,
    )


def _request_steps(notes: LogNotes, begin: float) -> Iterator[Step]:
    """What happens to the request as a whole."""
    first = notes.takes[0].time if notes.takes else None
    taken_at = first if first is not None else notes.answered_at
    yield Step(What.QUEUED, begin, taken_at, StepStatus.OPEN if taken_at is None else StepStatus.DONE)
    yield from (_take_over(before, take) for before, take in pairwise(notes.takes))
    yield from _hand_backs(notes)
    if notes.takes:
        yield _plan(notes)
    yield from (_growth(time, body) for time, body in notes.growths)
    yield from (_question(asked, notes) for asked in notes.state.questions.values())
    if notes.decided is not None:
        time, body = notes.decided
        yield Step(What.DECISION, time, time, details=body.model_dump())
    if (step := _answer(notes)) is not None:
        yield step


def _take_over(before: Take, take: Take) -> Step:
    details = {"from": take.before or before.body.instance, "delivery": take.body.delivery}
    at, worker = take.time, take.body.instance
    return Step(What.TAKE_OVER, at, at, worker=worker, tokens=take.tokens, usd=take.usd, details=details)


def _hand_backs(notes: LogNotes) -> Iterator[Step]:
    """A supervisor stopped; until another took the request, nobody had it."""
    for time, body in notes.hand_backs:
        after = [take.time for take in notes.takes if take.time >= time]
        end = after[0] if after else notes.answered_at
        status = StepStatus.OPEN if end is None else StepStatus.DONE
        yield Step(What.HAND_BACK, time, None if end is None else max(time, end), status, worker=body.instance)


def _plan(notes: LogNotes) -> Step:
    """By whoever had the request when it was recorded; a request without one failed there, or is being planned."""
    entry, answer = notes.state.plan_entry, notes.state.answer
    if entry is not None and notes.planned_at is not None:
        takes = [take for take in notes.takes if take.time <= notes.planned_at] or notes.takes
        details = {
            "planner": entry.planner,
            "warnings": list(entry.warnings),
            "max_attempts": entry.max_attempts,
            "timeout_seconds": entry.timeout_seconds,
            "in_flight": entry.in_flight,
            "plan": entry.plan.model_dump(mode="json"),
        }
        return Step(
            What.PLAN,
            min(takes[-1].time, notes.planned_at),
            notes.planned_at,
            worker=takes[-1].body.instance,
            tokens=entry.usage.tokens,
            usd=entry.usage.usd,
            details=details,
        )
    take = notes.takes[-1]
    if answer is None or notes.answered_at is None:
        return Step(What.PLAN, take.time, None, StepStatus.OPEN, worker=take.body.instance)
    error = answer.gaps[0] if answer.gaps else answer.text
    end = max(take.time, notes.answered_at)
    return Step(What.PLAN, take.time, end, _STATUS[answer.status], worker=take.body.instance, error=error)


def _growth(time: float, body: Extended) -> Step:
    """By what the plan grew, or why it did not."""
    details = {"cause": body.cause, "tasks": [spec.id for spec in body.add], "reason": body.reason}
    refused, usage = body.refused, body.usage
    return Step(
        What.GROWTH,
        time,
        time,
        StepStatus.DONE if refused is None else StepStatus.FAILED,
        error_class=refused.error_class if refused else "",
        error=refused.message if refused else "",
        tokens=usage.tokens,
        usd=usage.usd,
        details=details,
    )


def _question(asked: Asked, notes: LogNotes) -> Step:
    """A wait for a person: to the decision, or to the answer if that came first."""
    question, end = asked.question, asked.ended_at if asked.decision is not None else notes.answered_at
    status = StepStatus.OPEN if end is None else StepStatus.CANCELLED if asked.decision is None else StepStatus.DONE
    details = {"text": question.text, "choices": list(question.choices), "until": question.until}
    if asked.decision is not None:
        details |= {"decision": decision_as_json(asked.decision)}
    end = None if end is None else max(asked.asked_at, end)
    task, attempt = question.task_id or "", question.attempt or 0
    return Step(What.QUESTION, asked.asked_at, end, status, task=task, attempt=attempt, details=details)


def _answer(notes: LogNotes) -> Step | None:
    """From when nothing was left to wait for until it was written."""
    state, answer, answered_at = notes.state, notes.state.answer, notes.answered_at
    reasons = [time for time in (notes.completed_at, notes.decided[0] if notes.decided else None) if time is not None]
    if answer is None or answered_at is None:
        owner = state.owner or ""
        return Step(What.ANSWER, min(reasons), None, StepStatus.OPEN, worker=owner) if reasons else None
    begin = min([answered_at, *reasons])
    owner = notes.takes[-1].body.instance if notes.takes else ""
    own = _beyond(answer, notes)
    details = answer.model_dump(mode="json", exclude={"tasks", "request_id", "request_hash", "trace_id"})
    error = "" if answer.status is AnswerStatus.DONE else (answer.gaps[0] if answer.gaps else answer.text)
    return Step(
        What.ANSWER,
        begin,
        answered_at,
        _STATUS[answer.status],
        worker=owner,
        error=error,
        tokens=own[0],
        usd=own[1],
        details=details,
    )


def _beyond(answer: Answer, notes: LogNotes) -> tuple[int, float]:
    """What composing cost: the answer names the sum, the entries before it their parts."""
    before = notes.usage_before_answer
    return max(0, answer.usage.tokens - before.tokens), max(0.0, answer.usage.usd - before.usd)


def _strays(notes: LogNotes) -> Iterator[tuple[AttemptPlace, Run]]:
    """Results of what nobody dispatched: they count for nothing but their cost."""
    for ending in notes.strays:
        result = ending.result
        place = AttemptPlace(result.task_id, result.attempt, ending.time - result.seconds, None)
        yield place, Run(result.worker, result.delivery, result.role, ending=ending)


def _totals(whole: Step, steps: tuple[Step, ...], state: RequestState, end: float) -> Totals:
    attempts = sum(len(task.attempts) for task in state.tasks.values())
    kinds = [step.what for step in steps]
    statuses = [step.status for step in steps if step.what is What.ATTEMPT]
    phases = [task.phase for task in state.tasks.values()]
    queued = [step.until(end) - step.begin for step in steps if step.what is What.QUEUED]
    return Totals(
        wall_seconds=whole.until(end) - whole.begin,
        work_seconds=sum((task.seconds for task in state.tasks.values()), 0.0),
        queue_seconds=sum(queued, 0.0),
        tasks=len(state.tasks),
        done=phases.count(TaskPhase.DONE),
        failed=phases.count(TaskPhase.FAILED),
        attempts=attempts,
        retries=attempts - sum(bool(task.attempts) for task in state.tasks.values()),
        lost=statuses.count(StepStatus.LOST),
        takeovers=kinds.count(What.TAKE_OVER),
        hand_backs=kinds.count(What.HAND_BACK),
        conflicts=kinds.count(What.CONFLICT),
        uncounted=statuses.count(StepStatus.UNCOUNTED),
        tool_calls=kinds.count(What.TOOL),
        tokens=sum(step.tokens for step in steps),
        usd=sum((step.usd for step in steps), 0.0),
    )
