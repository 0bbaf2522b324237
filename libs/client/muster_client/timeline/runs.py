"""Which workers ran an attempt: one run for each delivery that was started, handed back or came to a result."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from muster_client.timeline.event_notes import Delivery, EventNotes
from muster_client.timeline.log_notes import Ending
from muster_client.timeline.steps import Step, StepStatus, What
from muster_protocol.messages import ToolUsed
from muster_protocol.status_words import ResultStatus

MAX_STARTS = 8  # of one attempt, without a result: more are nobody's work but somebody's forgery
MAX_PROGRESS = 20  # the last ones that a run reported
NO_WORD = "its worker said nothing more"
_STATUS = {
    ResultStatus.DONE: StepStatus.DONE,
    ResultStatus.FAILED: StepStatus.FAILED,
    ResultStatus.CANCELLED: StepStatus.CANCELLED,
}


@dataclass(slots=True)
class Run:
    """One worker at one delivery of an attempt."""

    worker: str
    delivery: int
    role: str = ""
    began: float | None = None
    last_sign: float = 0.0  # when it last said that it runs
    handed_back: float | None = None
    why_back: str = ""  # empty: its worker stopped
    ending: Ending | None = None
    progress: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    tools: list[tuple[float, ToolUsed]] = field(default_factory=list[tuple[float, ToolUsed]])

    @property
    def begin(self) -> float:
        """The earliest sign of it: a start is announced a little late, and a result is stored when it can be."""
        signs = [time for time in (self.began, self.handed_back) if time is not None]
        if self.ending is not None:
            signs.append(self.ending.time - self.ending.result.seconds)
        signs += [time for time, _ in self.progress[:1]]
        signs += [time - max(0.0, used.seconds) for time, used in self.tools[:1]]
        return min(signs)


def runs_of(endings: list[Ending], events: EventNotes) -> list[Run]:
    """The runs of one attempt, in the order in which they began."""
    runs: dict[Delivery, Run] = {}
    for key, (time, role) in list(events.starts.items())[:MAX_STARTS]:
        runs[key] = Run(*key[:2], role, time, events.signs[key])
    for key, (time, why) in events.hand_backs.items():
        run = runs.setdefault(_known(runs, key), Run(*key[:2]))
        run.handed_back, run.why_back = time, why
    more = [run for ending in endings if (run := _ended(runs, ending)) is not None]
    found = [*runs.values(), *more]
    _add_reports(found, events)
    return sorted(found, key=lambda run: (run.begin, run.delivery, run.worker))


def _known(runs: dict[Delivery, Run], key: Delivery) -> Delivery:
    """The run that is meant: an older worker did not say which message it had."""
    if key in runs:
        return key
    alike = (known for known in runs if known[:2] == key[:2] and not (known[2] and key[2]))
    return next(alike, key)


def _ended(runs: dict[Delivery, Run], ending: Ending) -> Run | None:
    """Give a result to its run, or to a new one where nothing else was seen of it."""
    result = ending.result
    key = _known(runs, (result.worker, result.delivery, result.task_sequence))
    run = runs.get(key)
    if not result.worker:  # its owner gave the attempt up: the run that said nothing more is meant
        silent = [run for run in runs.values() if run.ending is None and run.handed_back is None]
        run = max(silent, key=lambda run: (run.begin, run.delivery, run.worker), default=None)
    if run is not None and run.ending is None:
        run.ending, run.role = ending, result.role or run.role
        return None
    run = Run(result.worker, result.delivery, result.role, ending=ending)
    if result.worker and key not in runs:
        runs[key] = run
        return None
    return run


def _add_reports(runs: list[Run], events: EventNotes) -> None:
    """Give tool calls and progress to the run of the worker that reported them."""
    by_worker: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.begin, run.delivery)):
        by_worker.setdefault(run.worker, []).append(run)
    for time, worker, text in events.progress:
        if (run := _at(by_worker.get(worker, []), time)) is not None:
            run.progress = [*run.progress[-MAX_PROGRESS + 1 :], (time, text)]
    for time, worker, used in events.tools:
        if (run := _at(by_worker.get(worker, []), time)) is not None:
            run.tools.append((time, used))


def _at(runs: list[Run], time: float) -> Run | None:
    """The run of one worker that was going on at a time."""
    begun = [run for run in runs if run.begin <= time]
    return begun[-1] if begun else runs[0] if runs else None


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    """Where the runs of an attempt lie in time, and in which task."""

    task: str
    attempt: int
    begin: float  # nobody can have begun before it was reserved
    closed_at: float | None  # when the task was done, or the request was answered


def run_steps(place: AttemptPlace, runs: list[Run]) -> Iterator[Step]:
    """Each run with its tool calls, and the wait after each that was handed back."""
    counted_at = next((run.ending.time for run in runs if run.ending and not run.ending.uncounted), None)
    for index, run in enumerate(runs):
        begin = max(place.begin, run.begin)
        after = max(begin, runs[index + 1].begin) if index + 1 < len(runs) else None
        if run.ending is not None:
            step = _ended_step(place, run, run.ending, begin)
        else:
            end, status, error = _unended(run, after, counted_at, place.closed_at)
            end = None if end is None else max(begin, end)
            step = _step(place, run, begin, end, status=status, error=error)
        yield step
        yield from _tool_steps(step, run)
        if run.ending is None and run.handed_back is not None:
            end = after if after is not None else place.closed_at
            back = max(begin, run.handed_back)
            open_or_done = StepStatus.OPEN if end is None else StepStatus.DONE
            yield _step(
                place, run, back, None if end is None else max(back, end), what=What.HAND_BACK, status=open_or_done
            )


def _unended(
    run: Run, after: float | None, counted_at: float | None, closed_at: float | None
) -> tuple[float | None, StepStatus, str]:
    """When a run without a result ended, as what, and why that is thought."""
    if run.handed_back is not None:
        return run.handed_back, StepStatus.HANDED_BACK, run.why_back
    if after is not None and run.last_sign <= after:  # else it runs beside the next one
        return after, StepStatus.LOST, f"{NO_WORD}; the task was delivered again"
    if counted_at is not None:
        return counted_at, StepStatus.LOST, f"{NO_WORD}; the attempt has another result"
    if closed_at is not None:
        return closed_at, StepStatus.CANCELLED, "the task was done, or the request answered, before it gave a result"
    return None, StepStatus.OPEN, ""


def _ended_step(place: AttemptPlace, run: Run, ending: Ending, begin: float) -> Step:
    result, failure = ending.result, ending.result.error
    details: dict[str, Any] = {
        "output": result.output,
        "seconds": result.seconds,
        "usage": result.usage.model_dump(),
        "reported_by": "worker" if result.worker else "supervisor",
    }
    if failure is not None and failure.stack:
        details["stack"] = failure.stack
    return _step(
        place,
        run,
        begin,
        max(begin, ending.time),
        status=StepStatus.UNCOUNTED if ending.uncounted else _STATUS[result.status],
        error=ending.uncounted or (failure.message if failure else ""),
        error_class=failure.error_class if failure else "",
        tokens=result.usage.tokens,
        usd=result.usage.usd,
        details=details,
    )


def _step(place: AttemptPlace, run: Run, begin: float, end: float | None, **more: Any) -> Step:
    told = [{"time": time, "text": text} for time, text in run.progress]
    fields: dict[str, Any] = {"what": What.ATTEMPT, **more}
    if told and fields["what"] is What.ATTEMPT:
        fields["details"] = {**fields.get("details", {}), "progress": told}
    return Step(
        begin=begin,
        end=end,
        task=place.task,
        attempt=place.attempt,
        delivery=run.delivery,
        worker=run.worker,
        role=run.role,
        **fields,
    )


def _tool_steps(step: Step, run: Run) -> Iterator[Step]:
    """The calls that the result recorded, else those that events told."""
    calls = run.ending.result.tool_calls if run.ending is not None else ()
    if calls:
        for call in calls:
            at, seconds = _number(call.get("at")), _number(call.get("seconds"))
            yield _tool_step(step, step.begin + at, seconds, call)
        return
    for time, used in run.tools:
        seconds = _number(used.seconds)
        yield _tool_step(step, time - seconds, seconds, used.model_dump(include={"tool", "error", "error_class"}))


def _tool_step(step: Step, begin: float, seconds: float, call: dict[str, Any]) -> Step:
    """A call, kept within its run: clocks of workers differ by milliseconds."""
    last = step.end if step.end is not None else begin + seconds
    begin = min(max(begin, step.begin), max(last, step.begin))
    error = call.get("error")
    content = {name: call[name] for name in ("arguments", "output", "cut") if name in call}
    return Step(
        What.TOOL,
        begin,
        min(begin + seconds, max(begin, last)),
        StepStatus.DONE if error is None else StepStatus.FAILED,
        task=step.task,
        attempt=step.attempt,
        delivery=step.delivery,
        worker=step.worker,
        role=step.role,
        error="" if error is None else str(error),
        error_class="" if error is None else str(call.get("error_class") or ""),
        details={"tool": str(call.get("tool", "")), **content},
    )


def _number(value: object) -> float:
    """A number of seconds as somebody wrote it; nothing else has a place in time."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0
