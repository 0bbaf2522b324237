"""Blocks as HTML or as plain text; whatever stands in them is text and never markup. Pure."""

import html
import re
from collections.abc import Callable, Sequence
from typing import assert_never

from muster_agent.tools.document.blocks import Block, Code, Grid, Heading, Paragraph, Points

_INLINE = re.compile(
    r"`([^`\n]{1,500})`|\*\*([^*\n]{1,500})\*\*|(?<![\w*])[*_]([^*_\n]{1,500})[*_](?!\w)"
    r"|\[([^\[\]\n]{1,500})\]\((https?://[^\s()<>\"']{1,2000})\)"
)
_MAX_WIDTH = 60  # characters of a column in plain text


def as_html(title: str, blocks: Sequence[Block]) -> str:
    """A whole page."""
    body = "\n".join(_html(block) for block in blocks)
    head = f'<meta charset="utf-8">\n<title>{html.escape(title)}</title>'
    return f"<!doctype html>\n<html>\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n"


def as_plain(blocks: Sequence[Block]) -> str:
    """Text without marks, for a mail or a terminal."""
    return "\n\n".join(_plain(block) for block in blocks) + "\n"


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{_inline(text)}</p>"
        case Points(is_numbered, points):
            tag = "ol" if is_numbered else "ul"
            return "\n".join([f"<{tag}>", *(f"<li>{_inline(point)}</li>" for point in points), f"</{tag}>"])
        case Grid(columns, rows):
            lines = [_html_row(columns, "th"), *(_html_row(row, "td") for row in rows)]
            return "\n".join(["<table>", *lines, "</table>"])
        case Code(text):
            return f"<pre><code>{html.escape(text)}</code></pre>"
        case _:
            assert_never(block)


def _html_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in cells)}</tr>"


def _inline(text: str) -> str:
    return _marked(text, html.escape, "<code>{}</code>", "<strong>{}</strong>", "<em>{}</em>", '<a href="{1}">{0}</a>')


def _marked(text: str, outside: Callable[[str], str], *forms: str) -> str:
    """A text with what is marked in it in the forms of code, strong, emphasis and link."""
    parts: list[str] = []
    at = 0
    for found in _INLINE.finditer(text):
        parts.append(outside(text[at : found.start()]))
        kind = next(n for n, words in enumerate(found.groups()[:4]) if words is not None)
        parts.append(forms[kind].format(outside(found.groups()[kind]), outside(found[5] or "")))
        at = found.end()
    return "".join([*parts, outside(text[at:])])


def _plain(block: Block) -> str:
    match block:
        case Heading(level, text):
            words = _bare(text)
            return f"{words}\n{('=' if level == 1 else '-') * max(1, len(words))}"
        case Paragraph(text):
            return _bare(text)
        case Points(is_numbered, points):
            numbered = enumerate(points, 1)
            return "\n".join(f"{f'{n}.' if is_numbered else '-'} {_bare(point)}" for n, point in numbered)
        case Grid(columns, rows):
            return _plain_grid([[_bare(cell) for cell in row] for row in (columns, *rows)])
        case Code(text):
            return "\n".join(f"    {line}" for line in text.splitlines())
        case _:
            assert_never(block)


def _plain_grid(rows: Sequence[Sequence[str]]) -> str:
    width = max(map(len, rows))
    whole = [[*row, *[""] * (width - len(row))] for row in rows]
    widths = [min(_MAX_WIDTH, max(len(row[n]) for row in whole)) for n in range(width)]
    lines = ["  ".join(cell.ljust(widths[n]) for n, cell in enumerate(row)).rstrip() for row in whole]
    return "\n".join([lines[0], "  ".join("-" * each for each in widths), *lines[1:]])


def _bare(text: str) -> str:
    return _marked(text, str, "{}", "{}", "{}", "{0} ({1})")
