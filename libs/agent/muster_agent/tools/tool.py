"""The tools of a role: a name, a schema and a function that takes checked arguments and returns text."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from muster_agent.functions import call, load_function
from muster_agent.models.port import ToolSpec
from muster_agent.team.file import ModelRole, Team
from muster_agent.tools.calculate import calculate
from muster_agent.tools.corpus import Passage, read_corpus, search
from muster_agent.tools.tables import Table, query, read_tables
from muster_protocol.errors import Invalid
from muster_protocol.plan import Frozen

MAX_OUTPUT = 50_000  # characters; more would push the task itself out of a model's sight


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a role may do."""

    spec: ToolSpec
    arguments: type[BaseModel]
    function: Callable[..., Any]

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """Check the arguments, call the function, and give back its output as text."""
        checked = self.arguments.model_validate(dict(arguments))
        values = {name: getattr(checked, name) for name in self.arguments.model_fields}
        output = await call(self.function, **values)
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
        return text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT]}\n[cut off after {MAX_OUTPUT:,} characters]"


def tools_for(role: ModelRole, team: Team) -> dict[str, Tool]:
    """The role's own tools, by name, and no others."""
    tools: dict[str, Tool] = {}
    for name in role.tools:
        tool = tool_of(load_function(name, team.folder)) if ":" in name else _built_in(name, team)
        if tool.spec.name in tools:
            raise Invalid(f"a second tool named {tool.spec.name!r}", f"roles.{role.name}.tools")
        tools[tool.spec.name] = tool
    return tools


def tool_of(function: Callable[..., Any], description: str = "") -> Tool:
    """A tool from a function: the schema from its signature, the description from its docstring."""
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Invalid(f"{function.__name__} has the parameter *{name}; a tool names all its parameters", "tools")
        kind: Any = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (kind, ... if parameter.default is parameter.empty else parameter.default)
    arguments = create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    schema = {key: value for key, value in arguments.model_json_schema().items() if key != "title"}
    text = description or inspect.getdoc(function) or function.__name__.replace("_", " ")
    return Tool(ToolSpec(function.__name__, text, schema), arguments, function)


def explained(error: Exception) -> str:
    """A tool's error in words that a model can act on."""
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    problems = (f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
    return "bad arguments: " + "; ".join(problems)


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


def _built_in(name: str, team: Team) -> Tool:
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
