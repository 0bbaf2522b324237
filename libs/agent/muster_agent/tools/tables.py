"""Runs read-only SQL over the CSV files of a team, in a memory database for each query."""

import csv
import json
import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from muster_protocol.counted import counted
from muster_protocol.errors import Invalid

MAX_ROWS = 100  # more would fill the context window of a model
MAX_SECONDS = 2.0
MAX_FILE_BYTES = 20_000_000
_MAX_VALUE_BYTES = 1_000_000
_STEPS_BETWEEN_CHECKS = 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FUNCTION_NAMES = (
    "abs avg coalesce count ifnull iif instr length like lower ltrim max min nullif replace round rtrim sign "
    "substr substring sum total trim upper rank row_number dense_rank lag lead first_value last_value"
)
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_READS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ))

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """One CSV file: columns with their SQL types, rows, and the text of its `#` lines."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""

    def __str__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"{self.name}({columns})" + (f" -- {self.note}" if self.note else "")


def read_tables(folder: Path) -> tuple[Table, ...]:
    """Every CSV file of the folder, by name."""
    return tuple(read_table(path) for path in sorted(folder.glob("*.csv")))


def read_table(path: Path) -> Table:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Invalid(f"larger than {MAX_FILE_BYTES:,} bytes", str(path))
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise Invalid(f"not a text file in UTF-8: {error.reason}", str(path)) from None
    note = " ".join(line.lstrip("# ").strip() for line in lines if line.startswith("#"))
    header, *rows = list(csv.reader(line for line in lines if line.strip() and not line.startswith("#"))) or [[]]
    for name in (path.stem, *header):
        if not _NAME.fullmatch(name):
            raise Invalid(f"{name!r} cannot be the name of a table or column: letters, digits and _ only", str(path))
    if not header or len(set(header)) != len(header):
        raise Invalid("the first line names each column once", str(path))
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise Invalid(f"row {number} has {counted(len(row), 'value')}, the header has {len(header)}", str(path))
    columns = [_typed([row[index] for row in rows]) for index in range(len(header))]
    return Table(
        name=path.stem,
        columns=tuple((name, kind) for name, (kind, _) in zip(header, columns, strict=True)),
        rows=tuple(zip(*(values for _, values in columns), strict=True)),
        note=note,
    )


def _typed(texts: Sequence[str]) -> tuple[str, list[Value]]:
    """A column of whole numbers, of numbers, or of texts; empty is NULL."""
    for kind, convert in (("INTEGER", int), ("REAL", float)):
        try:
            return kind, [convert(text) if text else None for text in texts]
        except ValueError:
            continue
    return "TEXT", [text or None for text in texts]


class QueryRefused(ValueError):
    """The query is not allowed or failed; the text says why."""


def query(tables: Sequence[Table], sql: str) -> str:
    """The rows of one SELECT as JSON: columns, rows, and whether some were left out."""
    with closing(sqlite3.connect(":memory:")) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table.name} ({', '.join(f'{n} {k}' for n, k in table.columns)})")
            marks = ", ".join("?" * len(table.columns))
            database.executemany(f"INSERT INTO {table.name} VALUES ({marks})", table.rows)
        _guard(database)
        try:
            cursor = database.execute(sql)
            rows = cursor.fetchmany(MAX_ROWS + 1)
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise QueryRefused(f"the query took longer than {MAX_SECONDS:g} s and was stopped") from None
            raise QueryRefused(f"{error}; {_known(tables)}") from None
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise QueryRefused(f"{error}; one SELECT on these tables may run: {_known(tables)}") from None
        if cursor.description is None:
            raise QueryRefused(f"this is not a SELECT; {_known(tables)}")
        columns = [str(column[0]) for column in cursor.description]
    shown = [[_shown(value) for value in row] for row in rows[:MAX_ROWS]]
    return json.dumps({"columns": columns, "rows": shown, "has_more_rows": len(rows) > MAX_ROWS}, ensure_ascii=False)


def _known(tables: Sequence[Table]) -> str:
    return "tables: " + "; ".join(str(table) for table in tables)


def _shown(value: object) -> Value:
    return value if isinstance(value, str | int | float) or value is None else repr(value)


def _guard(database: sqlite3.Connection) -> None:
    """Allow only reads, small values and short runs from here on."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000)
    until = time.monotonic() + MAX_SECONDS
    database.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS_BETWEEN_CHECKS)

    def may(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
        is_known_function = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS
        return sqlite3.SQLITE_OK if action in _READS or is_known_function else sqlite3.SQLITE_DENY

    database.set_authorizer(may)
