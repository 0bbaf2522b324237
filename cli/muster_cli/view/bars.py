"""The bars of a waterfall: intervals of time as characters, on a scale that fits the terminal."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

from rich.text import Text

from muster_cli.view.plain import duration

TICK_CELLS = 22  # room for one label of the axis and the space after it


class Ink(StrEnum):
    """What a part of a bar stands for; the later ones cover the earlier ones."""

    WAITING = "·"
    LOST = "░"
    WORK = "▒"
    CRITICAL = "█"
    MOMENT = "◆"
    GOES_ON = "▶"


_LAYERS = list(Ink)


@dataclass(frozen=True, slots=True)
class Part:
    """An interval of a bar."""

    begin: float
    end: float
    ink: Ink


@dataclass(frozen=True, slots=True)
class Scale:
    """Which time is which cell."""

    begin: float
    seconds: float
    cells: int

    def bar(self, parts: list[Part], style: str, *, goes_on: bool = False) -> Text:
        """The parts on a line; every part is at least one cell wide, so that nothing is invisible."""
        line = [" "] * self.cells
        for part in sorted(parts, key=lambda part: _LAYERS.index(part.ink)):
            first, last = self._cells(part)
            line[first:last] = [part.ink.value] * (last - first)
        if goes_on:
            line[-1] = Ink.GOES_ON.value
        bar = Text("".join(line), style)
        bar.highlight_regex(f"{Ink.WAITING.value}+", "dim")
        return bar

    def axis(self) -> Text:
        """The times along the bars: at the beginning, in between where there is room, and at the end."""
        end = duration(self.seconds)
        line = list("0".ljust(self.cells))
        ticks = max(1, self.cells // TICK_CELLS)
        for tick in range(1, ticks):
            label, place = f"╷{duration(self.seconds * tick / ticks)}", self.cells * tick // ticks
            if place + len(label) < self.cells - len(end) - 1:
                line[place : place + len(label)] = label
        line[self.cells - len(end) :] = end
        return Text("".join(line)[: self.cells], "dim")

    def _cells(self, part: Part) -> tuple[int, int]:
        per_second = self.cells / self.seconds if self.seconds > 0 else 0.0
        first = min(self.cells - 1, max(0, floor((part.begin - self.begin) * per_second)))
        last = min(self.cells, max(first + 1, ceil((part.end - self.begin) * per_second - 1e-9)))
        return first, first + 1 if part.ink is Ink.MOMENT else last
