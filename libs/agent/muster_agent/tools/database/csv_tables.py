"""Runs read-only SQL over the CSV files of a team, in a memory database for each query."""

import csv
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from muster_agent.tools.database.select import Value, select
from muster_protocol.counted import counted
from muster_protocol.errors import Invalid

MAX_FILE_BYTES = 20_000_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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


def read_tables(files: Iterable[Path]) -> tuple[Table, ...]:
    """The table of each file."""
    return tuple(read_table(path) for path in files)


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


def query(tables: Sequence[Table], sql: str) -> str:
    """The rows of one SELECT as JSON: columns, rows, and whether some were left out."""
    with closing(sqlite3.connect(":memory:")) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table.name} ({', '.join(f'{n} {k}' for n, k in table.columns)})")
            marks = ", ".join("?" * len(table.columns))
            database.executemany(f"INSERT INTO {table.name} VALUES ({marks})", table.rows)
        return select(database, sql, f"tables: {'; '.join(str(table) for table in tables)}")
