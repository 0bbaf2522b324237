"""Works by rules: looks things up and computes with the role's own tools, and writes down their outputs."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster_agent.errors import ToolsFailed
from muster_agent.models.offline.measures import Measure, Rows, comparison, figures, measures, profile
from muster_agent.models.port import Ask, Reply, ToolCall, ToolSpec, WorkBrief, as_text
from muster_protocol.errors import Terminal

SIGNATURE = "offline (rule-based, not an LLM)"
_TABLE = re.compile(r"^- (\w+)\((.+?)\)(?: -- (.*))?$", re.MULTILINE)
_RESULT = "Result: "
_GAP = "Missing: "
_DATABASE = re.compile(r"^Database ([\w-]+) ", re.MULTILINE)
_NUMBERS = ("INTEGER", "REAL", "NUMERIC")
_PATH = re.compile(r"(?<![\w/.-])(?:(into|to|as) )?(\w[\w/.-]*\.(?:md|txt|csv|json|html))(?![\w/])", re.ASCII)
_URL = re.compile(r"https?://[^\s<>\"']+[\w/]")
_WRITE = ("calculate", "format_document", "write_file")
_OWN = ("search_corpus", "query_database", *_WRITE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The outputs of the tools so far."""

    tools: Mapping[str, ToolSpec]
    used: Sequence[tuple[ToolCall, str]]
    failures: Sequence[str] = ()  # of calls that raised, each with the name of its tool

    @property
    def names(self) -> set[str]:
        return {call.name for call, _ in self.used}

    def outputs(self, name: str) -> list[str]:
        return [text for call, text in self.used if call.name == name]


def work_by_rules(ask: Ask, brief: WorkBrief) -> Reply:
    """The next tool calls, or the text if nothing is left to look up, to compute or to lay out."""
    outputs = [pair for turn in ask.transcript for pair in zip(turn.reply.tool_calls, turn.outputs, strict=True)]
    used = [(call, output.text) for call, output in outputs if not output.is_error]
    failures = list(dict.fromkeys(f"{call.name} failed: {output.text}" for call, output in outputs if output.is_error))
    if failures and not used and not brief.context:
        raise ToolsFailed("; ".join(failures))
    seen = Seen({tool.name: tool for tool in ask.tools}, used, failures)
    calls = _next_calls(brief, seen, has_asked=bool(ask.transcript))
    if calls and not ask.is_last:
        numbered = [ToolCall(f"call-{len(outputs) + number}", *call) for number, call in enumerate(calls, 1)]
        return Reply(tool_calls=tuple(numbered), stop="tools")
    return Reply(text=_shaped(_text(brief, seen), brief.expected_output))


def head(description: str) -> str:
    """The subject of a task: its words before the colon."""
    return description.partition(":")[0].strip() or description


def _next_calls(brief: WorkBrief, seen: Seen, has_asked: bool) -> list[tuple[str, Mapping[str, Any]]]:
    if not has_asked:
        calls = _lookups(brief, seen.tools)
        if calls:
            return calls
    has_failed = any(failure.startswith("calculate ") for failure in seen.failures)
    if "calculate" in seen.tools and "calculate" not in seen.names and not has_failed:
        expressions = [measure.expression for measure in _measures(seen)]
        if expressions:
            return [("calculate", {"expression": expression}) for expression in expressions]
    has_failed = any(failure.startswith("format_document ") for failure in seen.failures)
    if "format_document" in seen.tools and "format_document" not in seen.names and not has_failed:
        return [("format_document", _layout(brief, seen))]
    return _writes(brief, seen)


def _writes(brief: WorkBrief, seen: Seen) -> list[tuple[str, Mapping[str, Any]]]:
    """What was laid out, or else found, goes into the file that the task names."""
    _, target = _paths(brief.description)
    has_tried = "write_file" in seen.names or any(failure.startswith("write_file ") for failure in seen.failures)
    if "write_file" not in seen.tools or has_tried or target is None:
        return []
    return [("write_file", {"path": target, "text": _text(brief, seen)})]


def _paths(description: str) -> tuple[list[str], str | None]:
    """The files that a task names to be read, and the one that it says to write into."""
    named = _PATH.findall(description)
    targets = [path for word, path in named if word]
    return list(dict.fromkeys(path for word, path in named if not word)), targets[-1] if targets else None


def _lookups(brief: WorkBrief, tools: Mapping[str, ToolSpec]) -> list[tuple[str, Mapping[str, Any]]]:
    calls: list[tuple[str, Mapping[str, Any]]] = []
    for tool in tools.values():
        match tool.name:
            case "search_corpus":
                calls.append((tool.name, {"query": head(brief.description), "limit": 8}))
            case "query_database":
                calls += [(tool.name, asked) for asked in _queries(tool, head(brief.description))]
            case "list_files" | "read_file":
                paths, _ = _paths(brief.description)
                if tool.name == "read_file":
                    calls += [(tool.name, {"path": path}) for path in paths]
                elif not paths:
                    calls.append((tool.name, {}))
            case "scrape_page":
                calls += [(tool.name, {"url": url}) for url in dict.fromkeys(_URL.findall(brief.description))]
            case "web_search":
                calls.append((tool.name, {"query": head(brief.description)[:400]}))
            case name if name not in _OWN and (parameter := _only_text_parameter(tool)):
                calls.append((name, {parameter: brief.description}))
            case _:
                pass
    return calls


def _queries(tool: ToolSpec, about: str) -> list[dict[str, str]]:
    """For each table: the rows whose first text column is named in the task, and the averages of its numbers."""
    quoted = about.lower().replace("'", "''")
    databases = [(found.start(), found[1]) for found in _DATABASE.finditer(tool.description)]
    queries: list[dict[str, str]] = []
    for table in _TABLE.finditer(tool.description):
        name, columns = table[1], [c.partition(" ") for c in table[2].split(", ")]
        key = next((column for column, _, kind in columns if kind == "TEXT" and column.isidentifier()), None)
        numbers = [column for column, _, kind in columns if kind in _NUMBERS and column.isidentifier()]
        of = [database for start, database in databases if start < table.start()]
        where = {"database": of[-1]} if of else {}
        if key and numbers:
            shown = ", ".join((key, *numbers))
            rows = f"SELECT {shown} FROM {name} WHERE instr('{quoted}', lower({key})) > 0 ORDER BY {key}"
            averages = f"SELECT {', '.join(f'avg({number}) AS {number}' for number in numbers)} FROM {name}"
            queries += [{"sql": rows, **where}, {"sql": averages, **where}]
    return queries


def _only_text_parameter(tool: ToolSpec) -> str | None:
    properties: Mapping[str, Any] = tool.schema.get("properties", {})
    required: Sequence[str] = tool.schema.get("required", ())
    is_text = len(required) == 1 and properties.get(required[0], {}).get("type") == "string"
    return required[0] if is_text else None


def _rows(seen: Seen) -> list[Rows]:
    """The rows of each queried table; each query for rows was followed by one for averages."""
    answers = [json.loads(text) for text in seen.outputs("query_database")]
    pairs = zip(answers[::2], answers[1::2], strict=False)
    return [
        Rows(
            columns=tuple(rows["columns"][1:]),
            names=tuple(str(row[0]) for row in rows["rows"]),
            values=tuple(tuple(row[1:]) for row in rows["rows"]),
            averages=tuple(averages["rows"][0]),
        )
        for rows, averages in pairs
        if rows["rows"]
    ]


def _measures(seen: Seen) -> list[Measure]:
    return [measure for rows in _rows(seen) for measure in measures(rows)]


def _text(brief: WorkBrief, seen: Seen) -> str:
    if documents := seen.outputs("format_document"):
        return documents[-1].strip()
    parts = [f"### {head(brief.description)}"]
    for passages in seen.outputs("search_corpus"):
        parts.append("\n".join(f"- {' '.join(passage.split())}" for passage in passages.split("\n\n")))
    parts += _numbers(seen)
    parts += [f"{_origin(call)}: {text}" for call, text in seen.used if call.name not in _OWN]
    if len(parts) == 1:
        given = [as_text(output) for output in brief.context.values()]
        nothing = "Nothing was found: there is no material and no tool output for this task, and rules know nothing."
        parts += given or [nothing]
    parts += [f"{_GAP}{failure}" for failure in seen.failures]
    return "\n\n".join([*parts, f"— {SIGNATURE}"])


def _origin(call: ToolCall) -> str:
    """Where an output is from: the file, or the tool."""
    return str(call.arguments["path"]) if call.name == "read_file" else call.name


def _numbers(seen: Seen) -> list[str]:
    tables = _rows(seen)
    if not tables:
        return []
    values = dict(zip((m.expression for m in _measures(seen)), seen.outputs("calculate"), strict=False))
    is_comparison = any(len(rows.names) > 1 for rows in tables)
    parts = [comparison(tables, values), *(figures(rows, values) for rows in tables)] if is_comparison else []
    parts += [] if is_comparison else [profile(rows, values) for rows in tables]
    notes = {f"{name}: {note}" for name, _, note in _TABLE.findall(seen.tools["query_database"].description) if note}
    return [part for part in [*parts, "\n".join(f"Source: table {note}" for note in sorted(notes))] if part]


def _layout(brief: WorkBrief, seen: Seen) -> Mapping[str, Any]:
    """The material as a document: results first, then every part under its own heading."""
    asked = brief.description.removeprefix("Write up the answer to: ")
    sections: list[dict[str, str]] = []
    results: list[str] = []
    for task_id, output in brief.context.items():
        heading, body = _section(task_id, as_text(output))
        found = [line for line in body.splitlines() if line.startswith(_RESULT)]
        results += [f"- {line.removeprefix(_RESULT)}" for line in found]
        body = "\n".join(line for line in body.splitlines() if line not in found).strip()
        sections.append({"heading": heading, "body": body or "Nothing was found."})
    for passages in seen.outputs("search_corpus"):
        sections.append({"heading": "From the documents", "body": passages})
    if seen.failures:
        sections.append({"heading": "Missing", "body": "\n".join(f"- {failure}" for failure in seen.failures)})
    if results:
        sections.insert(0, {"heading": "Summary", "body": "\n".join(results)})
    if not sections:
        sections = [{"heading": "Material", "body": "No material was given and none was found."}]
    return {"title": head(asked)[:120], "sections": sections, "footer": f"Put together by rules: {SIGNATURE}"}


def _section(task_id: str, text: str) -> tuple[str, str]:
    lines = [line for line in text.splitlines() if line.strip() != f"— {SIGNATURE}"]
    if lines and lines[0].startswith("### "):
        return lines[0].removeprefix("### "), "\n".join(lines[1:]).strip()
    return task_id.replace("-", " ").capitalize(), "\n".join(lines).strip()


def _shaped(text: str, expected: str | Mapping[str, Any] | None) -> str:
    """The text, or, if an object is expected, an object with the text in each string field."""
    if expected is None or isinstance(expected, str):
        return text
    properties: Mapping[str, Any] = expected.get("properties", {})
    texts = [name for name, schema in properties.items() if schema.get("type") == "string"]
    for name in expected.get("required", texts):
        if name not in texts:
            raise Terminal(f"the offline model only fills text fields; {name!r} needs an LLM: set ANTHROPIC_API_KEY")
    return json.dumps(dict.fromkeys(texts, text) or {"text": text}, ensure_ascii=False)
