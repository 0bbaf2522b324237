"""A list that fits the terminal: a table where there is room, else a few lines for each; ids are never cut."""

from collections.abc import Iterator
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from muster_cli.view.plain import plain

Cell = str | Text

INDENT = "    "  # of all lines of a row but the first
BETWEEN = " · "


class Listing:
    """Rows that begin with an id and end with sentences: the last `sentences` columns may take several lines."""

    def __init__(self, *names: str, sentences: int = 1, wide: int = 100) -> None:
        self._names = names
        self._sentences = sentences
        self._wide = wide  # columns of a terminal that has room for a table
        self._rows: list[list[Text]] = []

    def add(self, *cells: Cell) -> None:
        self._rows.append([Text(plain(cell)) if isinstance(cell, str) else cell for cell in cells])

    def __len__(self) -> int:
        return len(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= self._wide:
            yield self._table()
            return
        yield Text(self._names[0], "dim")
        for row in self._rows:
            yield from self._block(row, options.max_width)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        words = len(self._names) - self._sentences
        for place, name in enumerate(self._names):
            ids = max((cell_len(row[0].plain) for row in self._rows), default=0) if place == 0 else None
            table.add_column(name, overflow="fold", no_wrap=place < words, min_width=ids)
        for row in self._rows:
            table.add_row(*row)
        return table

    def _block(self, row: list[Text], width: int) -> Iterator[RenderableType]:
        """The id and its words, each with its name where it would mean nothing alone; then each sentence below."""
        words = len(self._names) - self._sentences
        line = row[0].copy()
        line.overflow = "fold"
        for name, cell in zip_longest(self._names[1:words], row[1:words], fillvalue=""):
            if isinstance(cell, Text) and cell.plain:
                named = Text(f"{name} " if cell.plain.replace(".", "").isdigit() else "", "dim") + cell
                if line.cell_len + len(BETWEEN) + named.cell_len > width:
                    yield line
                    line = Text(INDENT, overflow="fold") + named
                else:
                    line.append(BETWEEN, "dim").append(named)
        yield line
        for sentence in row[words:]:
            if sentence.plain:
                yield Padding(
                    Text(sentence.plain, sentence.style, overflow="fold"), (0, 0, 0, len(INDENT)), expand=False
                )
