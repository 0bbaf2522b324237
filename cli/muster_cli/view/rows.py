"""Which lines a waterfall has: one for each run of an attempt with the waits before it, and for what concerns all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from muster_cli.view.bars import Ink, Part
from muster_cli.view.board import name_of
from muster_cli.view.plain import plain
from muster_client.timeline import Step, StepStatus, Timeline, What
from muster_protocol.counted import counted
from muster_protocol.status import place_of

MARKS: Mapping[StepStatus, tuple[str, str]] = {
    StepStatus.OPEN: ("◐", "cyan"),
    StepStatus.DONE: ("✓", "green"),
    StepStatus.FAILED: ("✗", "red"),
    StepStatus.CANCELLED: ("■", "yellow"),
    StepStatus.HANDED_BACK: ("↩", "yellow"),
    StepStatus.LOST: ("✗", "red"),
    StepStatus.UNCOUNTED: ("≈", "dim"),
}
PARTIAL = ("◑", "yellow")
_EVENT_MARKS = {
    What.TAKE_OVER: ("⇄", "yellow"),
    What.HAND_BACK: ("↩", "yellow"),
    What.CONFLICT: ("⚠", "red"),
    What.DECISION: ("■", "yellow"),
}
_WAITS = (What.READY, What.REVISION, What.RETRY_WAIT, What.DISPATCH, What.QUEUED, What.HAND_BACK)
_WAITING_MARK = ("◌", "cyan")


@dataclass(frozen=True, slots=True)
class Row:
    """One line."""

    label: str
    who: str
    mark: tuple[str, str]  # and its style
    begin: float
    end: float
    parts: list[Part]
    is_open: bool = False
    is_waiting: bool = False  # nobody works on it
    is_critical: bool = False
    is_notable: bool = False  # something went wrong, or it goes on
    waited: float = 0.0
    took: float = 0.0
    reason: str = ""
    tools: list["Row"] = field(default_factory=list["Row"])


def rows_of(timeline: Timeline, *, is_whole: bool = False) -> list[Row]:
    """Every line in the order of a waterfall: each task's lines together, by when the task was begun.

    Calls of one tool in one run share a line, unless the whole is wanted.
    """
    groups: list[list[Row]] = []
    by_task: dict[str, list[Step]] = {}
    for step in timeline.steps:
        if step.task:
            by_task.setdefault(step.task, []).append(step)
        elif step.what is not What.REQUEST:
            groups.append([_request_row(step, timeline.end)])
    groups += [_task_rows(steps, timeline.end, is_whole=is_whole) for steps in by_task.values()]
    return [row for group in sorted(groups, key=lambda group: (group[0].begin, group[0].end)) for row in group]


def _request_row(step: Step, now: float) -> Row:
    who = plain(f"supervisor-{step.worker}") if step.worker else ""
    label, reason, ink = step.what.value, "", Ink.CRITICAL if step.is_critical else Ink.WORK  # the heading says why
    mark = _WAITING_MARK if step.what is What.QUEUED and step.status is StepStatus.OPEN else _mark(step)
    match step.what:
        case What.PLAN:
            plan = step.details.get("plan")
            label = f"plan: {counted(len(plan['tasks']), 'task')}" if plan else "plan"
        case What.GROWTH:
            label, ink, reason = f"plan: {_grown(step)}", Ink.MOMENT, step.error
        case What.ANSWER:
            status = step.details.get("status")
            label, mark = f"answer: {status}" if status else "answer", PARTIAL if status == "partial" else mark
        case What.QUESTION:
            label, ink, reason = "asked a person", Ink.WAITING, _asked(step)
        case What.QUEUED:
            ink = Ink.WAITING
        case What.TAKE_OVER:
            label, ink, reason = "taken over", Ink.MOMENT, f"from supervisor-{step.details.get('from', '')}"
        case What.HAND_BACK:
            label, ink = "handed back", Ink.WAITING
        case What.DECISION:
            label, ink = _decided(step), Ink.MOMENT
            who, reason = plain(str(step.details.get("by", ""))), str(step.details.get("reason", ""))
        case _:
            pass
    return replace(_row(step, now, label, who, ink, reason), mark=mark)


def _grown(step: Step) -> str:
    """How many tasks came, and because of what."""
    count = len(step.details["tasks"])
    return f"{counted(count, 'task') if count else 'nothing'} more ({step.details['cause']})"


def _asked(step: Step) -> str:
    """What a person was asked, and what counts."""
    said = step.details.get("decision")
    replied = "" if said is None else f": {said['decision']} {said.get('choice') or ''}".rstrip() + f" by {said['by']}"
    return plain(f"{step.details['text']}{replied}")


def _decided(step: Step) -> str:
    """What somebody said: `cancel`, `reply reject`, `reassign find to analyst`."""
    details = step.details
    words = [str(details["decision"]), str(details.get("choice") or details.get("task_id") or "")]
    to = details.get("worker") or details.get("role")
    return plain(" ".join([*filter(None, words), *((f"to {to}",) if to else ())]))


def _mark(step: Step) -> tuple[str, str]:
    return _EVENT_MARKS.get(step.what) or MARKS[step.status]


def _task_rows(steps: list[Step], now: float, *, is_whole: bool) -> list[Row]:
    """The runs of a task, each with the waits before it; a wait that goes on has a line of its own."""
    rows: list[Row] = []
    waits: list[Step] = []
    reason = ""
    tools: dict[tuple[int, str, int], list[Row]] = {}
    for step in steps:
        if step.what is What.TOOL:
            tools.setdefault((step.attempt, step.worker, step.delivery), []).append(_tool_row(step, now))
    for step in sorted(steps, key=lambda step: (step.begin, step.what not in _WAITS, step.attempt)):
        if step.what in _WAITS:
            waits.append(step)
        elif step.what is What.ATTEMPT:
            called = tools.pop((step.attempt, step.worker, step.delivery), [])
            called = called if is_whole else _grouped(called)
            row = _attempt_row(step, [wait for wait in waits if wait.begin <= step.begin], called, now)
            is_repeated = bool(row.reason) and row.reason == reason
            rows.append(replace(row, reason="the same again") if is_repeated else row)
            waits, reason = [], row.reason
        elif step.what is What.CONFLICT:
            rows.append(_row(step, now, f"{step.task} conflict", "", Ink.MOMENT, _sides(step)))
    if waits:
        rows.append(_waiting_row(waits, now))
    return rows


def _attempt_row(step: Step, waits: list[Step], tools: list[Row], now: float) -> Row:
    ink = Ink.LOST if step.status is StepStatus.LOST else Ink.CRITICAL if step.is_critical else Ink.WORK
    reason = step.error
    if step.status is StepStatus.LOST:
        reason = f"lost: {reason}"
    elif step.status is StepStatus.UNCOUNTED:
        reason = f"not counted: {reason}"
    elif step.error_class:
        reason = f"{step.error_class}: {plain(reason)}{place_of(step.details.get('stack'))}"
    elif step.status is StepStatus.HANDED_BACK:
        reason = f"handed back: {plain(reason) or 'its worker stopped'}"
    row = _row(step, now, _label(step), _who(step), ink, reason)
    begin = min([wait.begin for wait in waits], default=step.begin)
    row.parts[:0] = [Part(begin, step.begin, Ink.WAITING)] if waits and begin < step.begin else []
    row.tools.extend(tools)
    return replace(row, waited=step.begin - begin)


def _waiting_row(waits: list[Step], now: float) -> Row:
    """A task that nobody works on: it waits for room, for its next attempt, or for a worker."""
    last = waits[-1]
    begin, end = waits[0].begin, last.until(now)
    doing = {
        What.READY: "ready",
        What.REVISION: "is revised",
        What.RETRY_WAIT: "waits for its retry",
        What.HAND_BACK: "handed back",
    }.get(last.what, "waits for a worker")
    is_open = last.status is StepStatus.OPEN
    return Row(
        _label(last),
        doing,
        _WAITING_MARK if is_open else MARKS[last.status],
        begin,
        end,
        [Part(begin, end, Ink.WAITING)],
        is_open=is_open,
        is_waiting=True,
        is_critical=last.is_critical,
        is_notable=True,
        waited=end - begin,
    )


def _tool_row(step: Step, now: float) -> Row:
    arguments = plain(str(step.details.get("arguments", "")), 120)
    label = plain(str(step.details.get("tool", "")), 60)
    return _row(step, now, label, arguments, Ink.WORK, step.error)


def _grouped(calls: list[Row]) -> list[Row]:
    """The calls of one tool on one line; those that failed each on their own."""
    groups: dict[str, list[Row]] = {}
    for place, call in enumerate(calls):
        groups.setdefault(f"{call.label} {place}" if call.is_notable else call.label, []).append(call)
    return [group[0] if len(group) == 1 else _together(group) for group in groups.values()]


def _together(calls: list[Row]) -> Row:
    return replace(
        calls[0],
        label=f"{calls[0].label} ×{len(calls)}",
        who="",
        end=max(call.end for call in calls),
        parts=[part for call in calls for part in call.parts],
        took=sum(call.took for call in calls),
    )


def _row(step: Step, now: float, label: str, who: str, ink: Ink, reason: str) -> Row:
    end = step.until(now)
    return Row(
        label,
        who,
        _mark(step),
        step.begin,
        end,
        [Part(step.begin, end, ink)],
        is_open=step.status is StepStatus.OPEN,
        is_critical=step.is_critical,
        is_notable=step.status not in (StepStatus.DONE, StepStatus.UNCOUNTED),
        took=end - step.begin,
        reason=plain(reason) if reason else "",
    )


def _label(step: Step) -> str:
    """The task, the number of a further attempt, and whether the same attempt was delivered before."""
    again = " again" if step.delivery > 1 else ""
    return f"{step.task}{again}" if step.attempt == 1 else f"{step.task} #{step.attempt}{again}"


def _who(step: Step) -> str:
    """Who ran it; where nobody reported, the supervisor gave it up."""
    if not step.worker:
        return "given up"
    return plain(f"{name_of(step.worker)} as {step.role}" if step.role else name_of(step.worker), 60)


def _sides(step: Step) -> str:
    """What was seen twice, and what was decided: that names both sides."""
    if why := step.details.get("why"):
        return f"{step.error}: {why}"
    sides = " and ".join(str(side) for name in ("first", "second") if (side := step.details.get(name)))
    return f"{step.error}: {sides}" if sides else step.error


def chosen(rows: Iterable[Row], limit: int) -> tuple[list[Row], int]:
    """The lines that fit, and how many were left out: trouble first, then the critical path, then the longest."""
    rows = list(rows)
    everything = [(row, tool) for row in rows for tool in (None, *row.tools)]
    ranked = sorted(everything, key=lambda pair: _rank(*pair))
    kept = {id(tool or row) for row, tool in ranked[:limit]}
    shown: list[Row] = []
    for row in rows:
        tools = [tool for tool in row.tools if id(tool) in kept]
        if id(row) in kept:
            shown.append(replace(row, tools=tools))
    left_out = len(everything) - sum(1 + len(row.tools) for row in shown)
    return shown, left_out


def _rank(row: Row, tool: Row | None) -> tuple[int, float]:
    if tool is not None:
        return (2 if tool.is_notable else 4), -tool.took
    rank = 0 if row.is_notable else 1 if row.is_critical else 3
    return rank, -row.took
