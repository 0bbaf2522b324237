"""How a plan, its progress, an answer and a state look on a terminal."""

import json
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from muster_cli.view.board import Assignment, Board, in_order, name_of
from muster_cli.view.plain import plain
from muster_cli.view.printing.listing import Listing
from muster_client.view import RequestView
from muster_protocol.counted import counted
from muster_protocol.fold import RequestState, TaskPhase, TaskState
from muster_protocol.messages import Answer, AnswerStatus
from muster_protocol.messages.growth import origin_text
from muster_protocol.status import Standing, TaskStanding, explain_task, failure_text
from muster_protocol.status_words import TaskStatus

MAX_PROGRESS = 50  # characters of the last progress: one row for each task
MAX_SENTENCE = 1000
MAX_REMARK = 120  # characters of one source, or of what is in no result
MAX_SOURCES = 10  # `--json` has them all
SHARES = {
    "done": "of the tasks are done",
    "agreeing": "of the results contradict no other",
    "supported": "of the figures stand in a result",
}
MAX_ROWS = 30  # a screen; of a larger plan those tasks are shown that are neither waiting nor done

MARKS: Mapping[TaskStatus, tuple[str, str]] = {
    TaskStatus.WAITING: ("○", "dim"),
    TaskStatus.READY: ("○", ""),
    TaskStatus.QUEUED: ("◌", "cyan"),
    TaskStatus.RUNNING: ("◐", "cyan"),
    TaskStatus.RETRYING: ("↻", "yellow"),
    TaskStatus.DONE: ("✓", "green"),
    TaskStatus.FAILED: ("✗", "red"),
    TaskStatus.SKIPPED: ("–", "dim"),
    TaskStatus.CANCELLED: ("■", "yellow"),
}
COLOURS: Mapping[AnswerStatus, str] = {
    AnswerStatus.DONE: "green",
    AnswerStatus.PARTIAL: "yellow",
    AnswerStatus.FAILED: "red",
    AnswerStatus.CANCELLED: "yellow",
}


def plan_of(state: RequestState) -> RenderableType:
    """The tasks, each below and right of what it waits for."""
    table = _grid()
    rows = in_order(state)
    for task_id, depth in rows[:MAX_ROWS]:
        task = state.tasks[task_id]
        table.add_row(
            _indented(_name(task), depth), Text(_tag(task), "magenta"), Text(_after(state, task) or "at once", "dim")
        )
    if len(rows) > MAX_ROWS:
        table.add_row(Text(f"  … and {len(rows) - MAX_ROWS} more", "dim"))
    return table


def progress_of(board: Board, now: float) -> RenderableType:
    """The plan with what is happening to each task, for a live display."""
    state = board.state
    if state.plan_entry is None:
        return Text("  planning …" if state.owner else "  waiting for a supervisor …", "dim")
    table = _grid()
    for task_id, depth in _moving(board):
        task = state.tasks[task_id]
        standing = explain_task(state, task, board.seen(now))
        mark, style = MARKS[standing.status]
        name = Text.assemble(_indent(depth), (f"{mark} ", style), (_name(task), style))
        after = Text(_after(state, task), "dim", no_wrap=True, overflow="ellipsis")
        doing = _doing(task, standing, board.assignments.get(task_id), now)
        table.add_row(name, Text(_tag(task), "magenta"), doing, after)
    done = sum(task.phase is TaskPhase.DONE for task in state.tasks.values())
    return Group(table, Text(f"  {done} of {counted(len(state.tasks), 'task')} done", "dim"))


def tasks_of(view: RequestView) -> RenderableType:
    """Every task with its status and the reason for it."""
    listing = Listing("task", "status", "tag", "attempts", "seconds", "worker", "reason")
    for task_id, _ in in_order(view.state):
        task = view.state.tasks[task_id]
        standing, result = explain_task(view.state, task, view.seen), task.result
        mark, style = MARKS[standing.status]
        listing.add(
            _name(task),
            Text(f"{mark} {standing.status.value}", style),
            _tag(task),
            str(len(task.attempts)),
            f"{result.seconds:.1f}" if result else "",
            name_of(result.worker) if result else "",
            _reason(task, standing),
        )
    return listing


def show_answer(console: Console, answer: Answer) -> None:
    """For people Markdown, or JSON where that is the output; the bare text when a program or a file reads it."""
    if not console.is_terminal:
        console.print(answer.text, soft_wrap=True)
        return
    console.print(Rule(style="dim"))
    if (document := _document(answer)) is None:
        from muster_cli.view.printing.markdown import markdown  # costs a quarter of a second: a pipe need not pay it

        console.print(markdown(answer.text))
    else:
        console.print(document, soft_wrap=True)
    console.print(Rule(style="dim"))


def _document(answer: Answer) -> str | None:
    """The text of an answer, as JSON that people read, if it is the output as JSON; Markdown would run it together."""
    if isinstance(answer.output, str) or answer.output is None:
        return None
    try:
        is_output = json.loads(answer.text) == answer.output
    except ValueError:
        return None  # a model's words about it, or several outputs under their names
    return json.dumps(answer.output, ensure_ascii=False, indent=2) if is_output else None


def sentence(standing: Standing) -> str:
    """How a request stands, in one line."""
    return plain(str(standing), MAX_SENTENCE)


def ending_of(answer: Answer, jaeger_url: str | None) -> Text:
    """One line about how it ended, what it cost, and where its trace is seen."""
    done = sum(task.status is TaskStatus.DONE for task in answer.tasks)
    parts = [f"in {answer.seconds:.1f} s"]
    if answer.tasks:
        parts.append(f"{done} of {counted(len(answer.tasks), 'task')}")
    if answer.sequential_seconds:
        saved = answer.sequential_seconds - answer.seconds
        parts.append(f"{answer.sequential_seconds:.1f} s of work" + (f", {saved:.1f} s saved" if saved >= 0.05 else ""))
    if answer.usage.tokens:
        parts.append(counted(answer.usage.tokens, "token"))
    if answer.usage.usd:
        parts.append(f"${answer.usage.usd:.4f}")
    if answer.model:
        parts.append(f"model {plain(answer.model, 60)}")
    if jaeger_url and answer.trace_id:
        parts.append(f"{jaeger_url.rstrip('/')}/trace/{answer.trace_id}")
    return Text.assemble((answer.status.value, COLOURS[answer.status]), " ", " · ".join(parts))


def remarks_on(answer: Answer) -> list[Text]:
    """What is said beside an answer, a line each: how its plan grew, what the checks found, sources, confidence."""
    lines = [Text(f"☰ {plain(note, MAX_SENTENCE)}", "dim") for note in answer.growth]
    lines += [Text(f"⚠ contradiction: {plain(found, MAX_SENTENCE)}", "yellow") for found in answer.contradictions]
    if answer.unsupported:
        listed = ", ".join(plain(found, MAX_REMARK) for found in answer.unsupported)
        lines.append(Text(f"⚠ in no result: {listed}", "yellow"))
    if answer.sources:
        shown = [plain(source, MAX_REMARK) for source in answer.sources[:MAX_SOURCES]]
        more = len(answer.sources) - len(shown)
        lines.append(Text(f"sources: {', '.join(shown)}{f' and {more} more' if more else ''}", "dim"))
    parts = answer.confidence_parts
    if answer.confidence is not None and answer.confidence < 1 and parts is not None:
        shares = {name: getattr(parts, name) for name in SHARES}
        made_of = " × ".join(f"{share:g} {SHARES[name]}" for name, share in shares.items() if share < 1)
        lines.append(Text(f"confidence {answer.confidence:g}: {made_of}", "dim"))
    return lines


def _grid() -> Table:
    """Columns of a plan; the names of tasks are folded on a narrow terminal, never cut."""
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    return table


def _moving(board: Board) -> list[tuple[str, int]]:
    rows = in_order(board.state)
    if len(rows) <= MAX_ROWS:
        return rows
    still = (TaskPhase.WAITING, TaskPhase.DONE, TaskPhase.SKIPPED)
    moving = [row for row in rows if board.state.tasks[row[0]].phase not in still]
    return (moving or rows)[:MAX_ROWS]


def _doing(task: TaskState, standing: TaskStanding, assignment: Assignment | None, now: float) -> Text:
    style = MARKS[standing.status][1]
    if standing.status is TaskStatus.RUNNING and assignment is not None:
        progress = f"  · {assignment.progress[:MAX_PROGRESS]}" if assignment.progress else ""
        return Text(f"{max(0.0, now - assignment.since):4.1f} s  {name_of(assignment.worker)}{progress}", style)
    if standing.status is TaskStatus.DONE and task.result is not None:
        return Text(f"{task.result.seconds:4.1f} s  {name_of(task.result.worker)}", style)
    if standing.status in (TaskStatus.WAITING, TaskStatus.READY, TaskStatus.QUEUED):
        return Text(standing.status.value, "dim")
    return Text(f"{standing.status.value}: {_reason(task, standing)}"[:100], style)


def _reason(task: TaskState, standing: TaskStanding) -> str:
    """The reason of a task's status, of a failed one with the line of code where it failed; and who added the task."""
    origin = origin_text(task.grown_by) if task.grown_by else ""
    if task.phase is TaskPhase.FAILED and task.result is not None and task.result.error is not None:
        return "; ".join(filter(None, (failure_text(task.result.error), origin)))
    if standing.status is TaskStatus.DONE:
        return "; ".join(filter(None, (task.not_added, origin)))
    return " ".join(standing.reason.split())


def _name(task: TaskState) -> str:
    """What people call it: an item of a map by what it is."""
    return plain(task.spec.name)


def _tag(task: TaskState) -> str:
    spec = task.spec
    return spec.tag or "+".join(spec.match_all) or "|".join(spec.match_some)


def _after(state: RequestState, task: TaskState) -> str:
    needed = [plain(state.tasks[task_id].spec.name) for task_id in task.spec.dependencies]
    return f"after {_listed(needed)}" if needed else ""


def _listed(names: list[str], limit: int = 4) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def _indent(depth: int) -> str:
    return "  " + ("  " * (depth - 1) + "└ " if depth else "")


def _indented(name: str, depth: int) -> Text:
    return Text.assemble((_indent(depth), "dim"), (name, "bold"))
