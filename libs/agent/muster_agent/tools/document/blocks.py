"""Markdown as the blocks that it is made of: what a report needs, and no more of Markdown than that. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_HEADING = re.compile(r"(#{1,6}) +(.*)")
_POINT = re.compile(r" {0,12}(?:([-*+])|(\d{1,9})[.)]) +(.*)")
_RULE = frozenset(" :|-")  # what the line below the head of a table is made of


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Points:
    """A list: with numbers or without."""

    is_numbered: bool
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Code:
    text: str


Block = Heading | Paragraph | Points | Grid | Code


def blocks_of(text: str) -> list[Block]:
    """The blocks in their order; whatever is none of the others is a paragraph."""
    lines = text.splitlines()
    found: list[Block] = []
    at = 0
    while at < len(lines):
        block, at = _block(lines, at)
        if block is not None:
            found.append(block)
    return found


def _block(lines: Sequence[str], at: int) -> tuple[Block | None, int]:
    """The block that begins in a line, and the line behind it."""
    line = lines[at]
    if not line.strip():
        return None, at + 1
    if line.startswith("```"):
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("```")), len(lines))
        return Code("\n".join(lines[at + 1 : end])), end + 1
    if heading := _HEADING.match(line):
        return Heading(len(heading[1]), heading[2].rstrip(" #")), at + 1
    match _kind(lines, at):
        case "table":
            end = next((n for n in range(at + 2, len(lines)) if "|" not in lines[n]), len(lines))
            rows = tuple(cells_of(lines[n]) for n in range(at + 2, end))
            return Grid(cells_of(line), rows), end
        case "points":
            return _points(lines, at)
        case "paragraph":
            end = at + 1
            while end < len(lines) and _goes_on(lines, end):
                end += 1
            return Paragraph(" ".join(each.strip() for each in lines[at:end])), end


def cells_of(line: str) -> tuple[str, ...]:
    """The cells of one row of a table; a bar that belongs to a cell is written `\\|`."""
    bare = line.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", bare))


def row_of(cells: Sequence[str]) -> str:
    """A row of a table as Markdown, on one line whatever is in its cells."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def _kind(lines: Sequence[str], at: int) -> Literal["table", "points", "paragraph"]:
    rule = lines[at + 1] if at + 1 < len(lines) else ""
    is_table = "|" in lines[at] and "|" in rule and "-" in rule and _RULE.issuperset(rule.rstrip())
    return "table" if is_table else "points" if _POINT.match(lines[at]) else "paragraph"


def _goes_on(lines: Sequence[str], at: int) -> bool:
    """Whether a paragraph goes on in a line."""
    line = lines[at]
    return bool(line.strip()) and not line.startswith(("#", "```")) and _kind(lines, at) == "paragraph"


def _points(lines: Sequence[str], at: int) -> tuple[Points, int]:
    points = list(_matched(lines, at))
    is_numbered = points[0][0]
    return Points(is_numbered, tuple(text for _, text in points)), at + len(points)


def _matched(lines: Sequence[str], at: int) -> Iterator[tuple[bool, str]]:
    """The points of one list: one of the other kind begins another."""
    first = None
    for line in lines[at:]:
        found = _POINT.match(line)
        if found is None or (first is not None and (found[2] is not None) != first):
            return
        first = found[2] is not None
        yield first, found[3].strip()
