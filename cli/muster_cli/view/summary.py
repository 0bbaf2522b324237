"""What stands above and below a waterfall: how the request stands, and what its steps add up to."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from muster_cli.view.plain import duration, plain
from muster_cli.view.rows import MARKS, PARTIAL
from muster_client.timeline import StepStatus, Timeline
from muster_protocol.counted import counted
from muster_protocol.fold import TaskPhase
from muster_protocol.status_words import RequestStatus

PATH_NAMES = 8  # names of the critical path; of a longer one the first and the last
NAMED = 5  # tasks that were skipped
_MARKS = {
    RequestStatus.DONE: MARKS[StepStatus.DONE],
    RequestStatus.PARTIAL: PARTIAL,
    RequestStatus.FAILED: MARKS[StepStatus.FAILED],
    RequestStatus.CANCELLED: MARKS[StepStatus.CANCELLED],
}


def heading(timeline: Timeline) -> list[RenderableType]:
    """The id, how it stands and why, and what was asked."""
    standing, entry = timeline.standing, timeline.state.plan_entry
    mark, style = _MARKS.get(standing.status, MARKS[StepStatus.OPEN])
    is_trouble = standing.status in (RequestStatus.PARTIAL, RequestStatus.FAILED, RequestStatus.CANCELLED)
    why = standing.status.value if is_trouble else plain(str(standing))
    lines: list[RenderableType] = [Text.assemble((f"{mark} ", style), (timeline.state.request_id, "bold"), f"  {why}")]
    if entry is not None and (asked := plain(entry.text or entry.plan.goal, 200)):
        lines.append(_indented(asked, "dim"))
    if is_trouble:
        lines.append(_indented(plain(standing.reason), style))
    return lines


def summary(timeline: Timeline, jaeger_url: str | None) -> list[RenderableType]:
    """A few lines of numbers, in the words of people; what did not happen is not told."""
    path = " → ".join(_short_path(timeline.critical_path))
    lines = [f"critical path: {path}"] if path else []
    lines += [" · ".join(_times(timeline)), " · ".join(_counts(timeline))]
    skipped = [task_id for task_id, task in timeline.state.tasks.items() if task.phase is TaskPhase.SKIPPED]
    if skipped:
        more = f" and {len(skipped) - NAMED:,} more" if len(skipped) > NAMED else ""
        lines.append(f"skipped: {', '.join(skipped[:NAMED])}{more}")
    if (answer := timeline.state.answer) is not None:
        lines += [plain(note, 1000) for note in answer.growth]
        lines += [f"contradiction: {plain(found, 1000)}" for found in answer.contradictions]
        if answer.unsupported:
            lines.append(f"in no result: {', '.join(plain(found, 120) for found in answer.unsupported)}")
    shown: list[RenderableType] = [_indented(line) for line in lines if line]
    if jaeger_url:
        url = f"{jaeger_url.rstrip('/')}/trace/{timeline.trace_id}"
        shown.append(Text(f"  trace: {url}", "dim", no_wrap=True, overflow="ignore"))
    return shown


def _indented(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style), (0, 0, 0, 2), expand=False)


def _times(timeline: Timeline) -> Iterator[str]:
    totals = timeline.totals
    yield f"{duration(totals.wall_seconds)} {'so far' if timeline.is_open else 'in all'}"
    if totals.work_seconds:
        speed = totals.work_seconds / totals.wall_seconds if totals.wall_seconds > 0 else 0.0
        faster = f", {speed:.1f} × as fast as one after the other" if speed >= 1.05 else ""
        yield f"{duration(totals.work_seconds)} of work{faster}"
    if totals.queue_seconds >= 0.0005:
        yield f"{duration(totals.queue_seconds)} waiting in queues"


def _counts(timeline: Timeline) -> Iterator[str]:
    totals = timeline.totals
    if totals.tasks:
        yield f"{totals.done:,} of {counted(totals.tasks, 'task')} done"
    if totals.failed:
        yield f"{totals.failed:,} failed"
    if totals.attempts:
        yield counted(totals.attempts, "attempt")
    for number, what in (
        (totals.retries, "retry"),
        (totals.lost, "lost worker"),
        (totals.hand_backs, "hand-back"),
        (totals.takeovers, "takeover"),
        (totals.conflicts, "conflict"),
        (totals.uncounted, "result not counted"),
        (totals.tool_calls, "tool call"),
        (totals.tokens, "token"),
    ):
        if number:
            yield counted(number, what)
    if totals.usd:
        yield f"${totals.usd:.4f}"


def _short_path(names: tuple[str, ...]) -> list[str]:
    if len(names) <= PATH_NAMES:
        return list(names)
    half = PATH_NAMES // 2
    return [*names[:half], f"… {len(names) - PATH_NAMES} more …", *names[-half:]]
