"""Computes what rows of numbers show without knowing their subject: differences, leaders, other units.

A measure is an expression for the calculator. The sentences are written from the calculator's outputs alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Number = int | float | None
_LOWER_IS_BETTER = ("usd", "price", "cost", "minutes", "seconds", "latency", "downtime", "errors")
_HOURS_PER_MONTH = "730"
_MINUTES_PER_30_DAYS = "43200"


@dataclass(frozen=True, slots=True)
class Rows:
    """Named rows of numbers, and the averages of the whole table."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[tuple[Number, ...], ...]
    averages: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """An expression to compute, and what it means for one column of one row or of all rows."""

    expression: str
    kind: str
    column: str
    name: str = ""


def measures(rows: Rows) -> list[Measure]:
    """The measures of one row, compared with the average, or of several rows, compared with each other."""
    found: list[Measure] = []
    for index, column in enumerate(rows.columns):
        known = _known(rows, index)
        for name, value in known:
            found += _in_other_units(column, name, value)
        if column.endswith("percent"):  # a percentage of a percentage misleads
            continue
        if len(known) == 1:
            found += _against_average(column, *known[0], rows.averages[index])
        elif len(known) > 1:
            found += _spread(column, known)
    return found


def _against_average(column: str, name: str, value: int | float, average: Number) -> list[Measure]:
    if not average:
        return []
    return [Measure(f"round(({value} / {average} - 1) * 100, 1)", "against average", column, name)]


def _spread(column: str, known: Sequence[tuple[str, int | float]]) -> list[Measure]:
    """How far the highest is above the lowest, with the name of the best."""
    numbers = [value for _, value in known]
    low, high = min(numbers), max(numbers)
    if low <= 0:
        return []
    return [Measure(f"round(({high} / {low} - 1) * 100, 1)", "spread", column, _best(column, known)[0])]


def _known(rows: Rows, index: int) -> list[tuple[str, int | float]]:
    """The numbers of one column that are not missing, each with the name of its row."""
    pairs = [(name, row[index]) for name, row in zip(rows.names, rows.values, strict=True)]
    return [(name, value) for name, value in pairs if value is not None]


def profile(rows: Rows, values: Mapping[str, str]) -> str:
    """Each number of a row on a line, in other units and compared with the average."""
    lines: list[str] = []
    computed = measures(rows)
    for name, row in zip(rows.names, rows.values, strict=True):
        for column, value in zip(rows.columns, row, strict=True):
            if value is None:
                continue
            notes = [
                _note(measure, values[measure.expression])
                for measure in computed
                if measure.column == column and measure.name == name and measure.expression in values
            ]
            lines.append(f"- {name}, {_title(column)}: {value}" + (f" ({'; '.join(notes)})" if notes else ""))
    return "\n".join(lines)


def comparison(tables: Sequence[Rows], values: Mapping[str, str]) -> str:
    """The rows that lead in each column, as lines for the summary of a report."""
    lines: list[str] = []
    for rows in tables:
        for measure in measures(rows):
            if measure.kind == "spread" and (spread := values.get(measure.expression)):
                word = "lowest" if _is_lower_better(measure.column) else "highest"
                lines.append(f"Result: {_title(measure.column)}: {measure.name} has the {word}; spread {spread} %")
    totals: dict[str, list[str]] = {}
    for rows in tables:
        for name, columns in _leads(rows).items():
            totals.setdefault(name, []).extend(_title(column) for column in columns)
    for name, columns in sorted(totals.items(), key=lambda lead: (-len(lead[1]), lead[0])):
        lines.append(f"Result: {name} leads in: {', '.join(columns) or 'nothing'}")
    return "\n".join(lines)


def figures(rows: Rows, values: Mapping[str, str]) -> str:
    """The numbers as a Markdown table, with those in other units below."""
    lines = [f"| | {' | '.join(rows.names)} |", f"|---|{'---|' * len(rows.names)}"]
    computed: dict[tuple[str, str, str], str | None] = {}
    for measure in measures(rows):
        computed.setdefault((measure.kind, measure.column, measure.name), values.get(measure.expression))
    for index, column in enumerate(rows.columns):
        cells = [str(row[index]) if row[index] is not None else "–" for row in rows.values]
        lines.append(f"| {_title(column)} | {' | '.join(cells)} |")
        for kind in ("per month", "downtime"):
            converted = [computed.get((kind, column, name)) for name in rows.names]
            if any(converted):
                lines.append(f"| … {_UNIT[kind]} | {' | '.join(cell or '–' for cell in converted)} |")
    return "\n".join(lines)


_UNIT = {
    "per month": f"USD in a month of {_HOURS_PER_MONTH} hours",
    "downtime": "minutes of downtime allowed in 30 days",
}


def _in_other_units(column: str, name: str, value: int | float) -> list[Measure]:
    if column.endswith("usd_per_hour"):
        return [Measure(f"round({value} * {_HOURS_PER_MONTH}, 2)", "per month", column, name)]
    if column.endswith("uptime_percent"):
        return [Measure(f"round((100 - {value}) / 100 * {_MINUTES_PER_30_DAYS}, 2)", "downtime", column, name)]
    return []


def _note(measure: Measure, value: str) -> str:
    if measure.kind != "against average":
        return f"{value} {_UNIT[measure.kind]}"
    if value == "0":
        return "the average"
    return f"{value.removeprefix('-')} % {'below' if value.startswith('-') else 'above'} the average"


def _leads(rows: Rows) -> dict[str, list[str]]:
    """The columns in which each row alone is best."""
    leads: dict[str, list[str]] = {name: [] for name in rows.names} if len(rows.names) > 1 else {}
    for index, column in enumerate(rows.columns):
        known = _known(rows, index)
        best = _best(column, known) if len(known) > 1 else None
        if best and [value for _, value in known].count(best[1]) == 1:
            leads[best[0]].append(column)
    return leads


def _best(column: str, known: Sequence[tuple[str, int | float]]) -> tuple[str, int | float]:
    return (min if _is_lower_better(column) else max)(known, key=lambda pair: pair[1])


def _is_lower_better(column: str) -> bool:
    return any(word in column for word in _LOWER_IS_BETTER)


def _title(column: str) -> str:
    return column.replace("_", " ").replace("usd", "USD").replace("gb", "GB").replace("vcpu", "vCPU")
