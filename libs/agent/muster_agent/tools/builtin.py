"""The tools that every team can name without bringing code of its own."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from muster_agent.team.files import FilesSpec
from muster_agent.team.schema import Team
from muster_agent.tools.calculate import calculate
from muster_agent.tools.corpus import Passage, read_corpus, search
from muster_agent.tools.database.databases import TABLES, query_database_tool, read_database
from muster_agent.tools.document.tool import format_document
from muster_agent.tools.files.root import Root
from muster_agent.tools.files.tools import list_files_tool, read_file_tool, write_file_tool
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid


def built_in(name: str, team: Team, keys: Mapping[str, str]) -> Tool:
    """The built-in tool of this name, over what the team has for it."""
    match name:
        case "calculate" | "format_document":
            return tool_of(calculate if name == "calculate" else format_document)
        case "query_database" if team.tables is not None or team.databases:
            paths = {TABLES: team.tables} if team.tables is not None else {}
            return query_database_tool({of: read_database(path) for of, path in {**paths, **team.databases}.items()})
        case "search_corpus" if team.corpus is not None:
            return _search_corpus(read_corpus(team.corpus))
        case "list_files" | "read_file" | "write_file" if team.files is not None:
            return _files(name, team.files)
        case "scrape_page" | "web_search" if team.web is not None:
            return _web(name, team, keys)
        case _:
            raise Invalid(f"the team has no tool {name!r}", "tools")


def _files(name: str, files: FilesSpec) -> Tool:
    root = Root(files.root)
    if name == "write_file":
        if not files.write:
            raise Invalid("write_file needs files.write: true", "tools")
        return write_file_tool(root)
    return list_files_tool(root) if name == "list_files" else read_file_tool(root)


def _web(name: str, team: Team, keys: Mapping[str, str]) -> Tool:
    from muster_agent.tools.web.page import scrape_page_tool  # TLS takes memory that most workers have no use for
    from muster_agent.tools.web.search import web_search_tool

    assert team.web is not None
    if name == "scrape_page":
        return scrape_page_tool(team.web)
    if team.web.search is None:
        raise Invalid("web_search needs web.search", "tools")
    return web_search_tool(team.web, team.web.search, keys)


def _search_corpus(passages: tuple[Passage, ...]) -> Tool:
    def search_corpus(
        query: Annotated[str, Field(description="the words to look for")],
        limit: Annotated[int, Field(ge=1, le=20)] = 6,
    ) -> str:
        found = search(passages, query, limit)
        return "\n\n".join(str(passage) for passage in found) or f"nothing in the corpus matches {query!r}"

    return tool_of(search_corpus, "Search the team's documents; returns passages, each with its [file].")
