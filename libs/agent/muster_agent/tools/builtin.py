"""The tools that every team can name without bringing code of its own."""

from typing import Annotated

from pydantic import Field

from muster_agent.team.schema import Team
from muster_agent.tools.calculate import calculate
from muster_agent.tools.corpus import Passage, read_corpus, search
from muster_agent.tools.tables import Table, query, read_tables
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid
from muster_protocol.plan import Frozen


def built_in(name: str, team: Team) -> Tool:
    """The built-in tool of this name, over the tables and the corpus of the team."""
    match name:
        case "calculate":
            return tool_of(calculate)
        case "format_document":
            return tool_of(format_document)
        case "query_database" if team.tables is not None:
            return _query_database(read_tables(team.tables))
        case "search_corpus" if team.corpus is not None:
            return _search_corpus(read_corpus(team.corpus))
        case _:
            raise Invalid(f"the team has no tool {name!r}", "tools")


class Section(Frozen):
    """One part of a document."""

    heading: str = Field(min_length=1)
    body: str = Field(min_length=1)


def format_document(title: str, sections: list[Section], footer: str = "") -> str:
    """Lay out a Markdown document: one title, then the sections in order, then an optional footer."""
    parts = [f"# {title.strip()}"]
    parts += [f"## {section.heading.strip()}\n\n{section.body.strip()}" for section in sections]
    parts += [f"_{footer.strip()}_"] if footer.strip() else []
    return "\n\n".join(parts) + "\n"


def _query_database(tables: tuple[Table, ...]) -> Tool:
    def query_database(sql: Annotated[str, Field(description="one SQLite SELECT")]) -> str:
        return query(tables, sql)

    listed = "\n".join(f"- {table}" for table in tables)
    return tool_of(query_database, f"Run one read-only SQL SELECT on the team's tables. Tables:\n{listed}")


def _search_corpus(passages: tuple[Passage, ...]) -> Tool:
    def search_corpus(
        query: Annotated[str, Field(description="the words to look for")],
        limit: Annotated[int, Field(ge=1, le=20)] = 6,
    ) -> str:
        found = search(passages, query, limit)
        return "\n\n".join(str(passage) for passage in found) or f"nothing in the corpus matches {query!r}"

    return tool_of(search_corpus, "Search the team's documents; returns passages, each with its [file].")
