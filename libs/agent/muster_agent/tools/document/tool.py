"""The tool that lays out a document: a title, sections with text and tables, and a footer."""

from typing import Annotated, Literal

from pydantic import Field

from muster_agent.tools.document.blocks import blocks_of, row_of
from muster_agent.tools.document.render import as_html, as_plain
from muster_protocol.errors import Invalid
from muster_protocol.plan import Frozen

Cell = str | int | float | None


class Table(Frozen):
    """Rows under the names of their columns."""

    columns: list[str] = Field(min_length=1)
    rows: list[list[Cell]]


class Section(Frozen):
    """One part of a document."""

    heading: str = Field(min_length=1)
    body: str = Field(default="", description="Markdown: paragraphs, lists, tables")
    table: Table | None = None


Format = Annotated[Literal["markdown", "html", "plain"], Field(description="html is a whole page")]


def format_document(title: str, sections: list[Section], footer: str = "", format: Format = "markdown") -> str:  # noqa: A002 - a model reads the name
    """Lay out a document: one title, then the sections in order, each with text or a table, then an optional footer."""
    parts = [f"# {' '.join(title.split())}"]
    parts += [_section(section) for section in sections]
    parts += [f"_{' '.join(footer.split())}_"] if footer.strip() else []
    markdown = "\n\n".join(parts) + "\n"
    match format:
        case "markdown":
            return markdown
        case "html":
            return as_html(" ".join(title.split()), blocks_of(markdown))
        case "plain":
            return as_plain(blocks_of(markdown))


def _section(section: Section) -> str:
    parts = [f"## {' '.join(section.heading.split())}"]
    parts += [section.body.strip()] if section.body.strip() else []
    parts += [_table(section.table)] if section.table is not None else []
    if len(parts) == 1:
        raise Invalid(f"the section {section.heading!r} has neither a body nor a table; write one, or leave it out")
    return "\n\n".join(parts)


def _table(table: Table) -> str:
    for number, row in enumerate(table.rows, 1):
        if len(row) != len(table.columns):
            raise Invalid(f"row {number} has {len(row)} cells, and there are {len(table.columns)} columns", "table")
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.rows]
    return "\n".join([row_of(table.columns), row_of(["---"] * len(table.columns)), *map(row_of, rows)])
