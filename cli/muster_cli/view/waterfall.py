"""A timeline as a waterfall on a terminal: one line for each thing that took time, and what it all adds up to."""

from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from muster_cli.view.bars import Ink, Scale
from muster_cli.view.plain import duration, offset
from muster_cli.view.rows import Row, chosen, rows_of
from muster_cli.view.summary import heading, summary
from muster_client.timeline import Timeline

MAX_LINES = 40  # a screen or two; `--all` has no limit
MIN_BAR = 10  # cells: on a terminal too narrow for it lines are cut
WITH_WAITED, WITH_WORKER = 100, 110  # columns of a terminal that has room for them
TIME = 8  # cells of a duration and the space before it
TOOL = "└ "
LEGEND = (
    (Ink.CRITICAL, "critical path"),
    (Ink.WORK, "other work"),
    (Ink.WAITING, "waiting"),
    (Ink.LOST, "lost"),
    (Ink.MOMENT, "a moment"),
)


@dataclass(frozen=True, slots=True)
class Columns:
    """How the width of the terminal is shared."""

    label: int
    who: int
    has_waited: bool
    has_worker: bool
    scale: Scale


def show_waterfall(out: Console, timeline: Timeline, *, is_whole: bool, jaeger_url: str | None = None) -> None:
    """Print a request as a waterfall, as wide as the terminal."""
    every = rows_of(timeline, is_whole=is_whole)
    rows, left_out = (every, 0) if is_whole else chosen(every, MAX_LINES)
    columns = _columns(timeline, rows, out.width)
    lines: list[RenderableType] = [*heading(timeline), Text(), _header(columns)]
    for row in rows:
        lines += _lines(row, columns)
    if left_out:
        lines.append(Text(f"  … {left_out:,} more lines, the shortest ones, are not shown; --all shows them", "dim"))
    lines += [Text(), _legend(rows, is_open=timeline.is_open), *summary(timeline, jaeger_url)]
    out.print(Group(*lines))


def _columns(timeline: Timeline, rows: list[Row], width: int) -> Columns:
    """Names get what they need within limits that grow with the terminal; the bars have the rest."""
    has_waited, has_worker = width >= WITH_WAITED, width >= WITH_WORKER
    labels = [2 + cell_len(row.label) for row in rows]
    labels += [4 + len(TOOL) + cell_len(tool.label) for row in rows for tool in row.tools]
    names = [cell_len(_who(row, has_worker)) for row in rows]
    label = min(max([12, *labels]), max(24, width // 5))
    who = min(max([3, *names]), 26 if has_worker and width < 130 else max(12, width // 6))
    used = label + 1 + who + TIME * (3 if has_waited else 2) + 2
    scale = Scale(timeline.begin, timeline.end - timeline.begin, max(MIN_BAR, width - used))
    return Columns(label, who, has_waited, has_worker, scale)


def _header(columns: Columns) -> Text:
    times = ("at", "waited", "took") if columns.has_waited else ("at", "took")
    words = f"{fit('  step', columns.label)} {fit('who', columns.who)}{''.join(time.rjust(TIME) for time in times)}  "
    return _line(Text(words, "dim"), columns.scale.axis())


def _lines(row: Row, columns: Columns) -> list[RenderableType]:
    """A row, why it failed below it, and its tool calls below that. An id is never cut: a long one has its own line."""
    name = f"{row.mark[0]} {row.label}"
    lines: list[RenderableType] = []
    if cell_len(name) > columns.label:
        lines.append(_label(row, name, is_faint=False))
        name = ""
    lines.append(_row_line(row, name, _who(row, columns.has_worker), columns))
    if row.reason:
        lines.append(_reason(row, 4))
    for tool in row.tools:
        name = f"  {TOOL}{tool.mark[0]} {tool.label}"
        lines.append(_row_line(tool, name, tool.who, columns, is_faint=not tool.is_notable))
        if tool.reason:
            lines.append(_reason(tool, 8))
    return lines


def _row_line(row: Row, name: str, who: str, columns: Columns, *, is_faint: bool = False) -> Text:
    style = "dim" if is_faint else row.mark[1]
    scale = columns.scale
    has_no_time = row.is_waiting or row.parts[-1].ink is Ink.MOMENT
    times = [offset(row.begin - scale.begin, scale.seconds), "" if has_no_time else duration(row.took)]
    if columns.has_waited:
        times.insert(1, duration(row.waited) if row.waited >= 0.0005 else "")
    label = _label(row, fit(name, columns.label), is_faint=is_faint)
    bar = scale.bar(row.parts, style, goes_on=row.is_open)
    return _line(label, f" {fit(who, columns.who)}", Text("".join(time.rjust(TIME) for time in times)), "  ", bar)


def _label(row: Row, name: str, *, is_faint: bool) -> Text:
    label = Text(name, "dim" if is_faint else "bold" if row.is_critical else "", overflow="fold")
    label.stylize("dim" if is_faint else row.mark[1], 0, name.find(row.mark[0]) + 1)
    return label


def _reason(row: Row, indent: int) -> RenderableType:
    style = "red" if row.mark[1] == "red" else "dim"
    return Padding(Text(f"↳ {row.reason}", style, overflow="fold"), (0, 0, 0, indent), expand=False)


def _who(row: Row, has_worker: bool) -> str:
    """The worker and its role; on a narrow terminal the role alone, or the service."""
    if has_worker:
        return row.who
    return "supervisor" if row.who.startswith("supervisor-") else row.who.rpartition(" as ")[2]


def _legend(rows: list[Row], *, is_open: bool) -> Text:
    """What the characters of these bars mean, and no others."""
    used = {part.ink for row in rows for part in (*row.parts, *(part for tool in row.tools for part in tool.parts))}
    words = [f"{ink.value} {meaning}" for ink, meaning in LEGEND if ink in used]
    return Text("  " + "   ".join([*words, *([f"{Ink.GOES_ON.value} goes on"] if is_open else [])]), "dim")


def fit(text: str, cells: int) -> str:
    """Exactly so many cells: filled up, or with an ellipsis in the middle, because names differ at their ends."""
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    tail = chop_cells(text[::-1], (cells - 1) // 3)[0][::-1]
    return f"{set_cell_size(text, cells - 1 - cell_len(tail))}…{tail}"


def _line(*parts: str | Text) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for part in parts:
        line.append(part)
    line.rstrip()
    return line
