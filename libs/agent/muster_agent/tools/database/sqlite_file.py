"""A SQLite database of the team, opened anew and read-only for each query."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from muster_agent.tools.database.select import QueryRefused, select
from muster_protocol.errors import Invalid

MAX_TABLES = 200
_SCHEMA = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite#_%' ESCAPE '#'"
_COLUMNS = "SELECT name, type FROM pragma_table_info(?)"
_KINDS = (("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("BLOB", "BLOB"), ("REAL", "REAL"))
_MORE_KINDS = (("FLOA", "REAL"), ("DOUB", "REAL"))


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """One database file; `tables` says what was in it when it was loaded."""

    path: Path
    tables: tuple[str, ...]

    dialect: ClassVar[str] = "SQLite"

    def query(self, sql: str) -> str:
        try:
            opened = _open(self.path)
        except sqlite3.Error as error:
            raise QueryRefused(f"the database cannot be opened: {error}") from None
        with closing(opened) as database:
            return select(database, sql, f"tables: {'; '.join(self.tables)}")


def read_sqlite(path: Path) -> SqliteFile:
    """The database in a file; Invalid if it is none."""
    try:
        with closing(_open(path)) as database:
            names = [str(name) for (name,) in database.execute(f"{_SCHEMA} ORDER BY name LIMIT {MAX_TABLES + 1}")]
            tables = tuple(found for name in names if (found := _described(database, name)))
    except sqlite3.Error as error:
        raise Invalid(f"is no SQLite database that can be read: {error}", str(path)) from None
    if not 1 <= len(tables) <= MAX_TABLES:
        raise Invalid(f"has {'more tables' if tables else 'no table'}; 1 to {MAX_TABLES} can be asked", str(path))
    return SqliteFile(path, tables)


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=1)
    database.execute("PRAGMA query_only = ON")
    database.execute("PRAGMA trusted_schema = OFF")  # a view of somebody else's calls nothing but plain functions
    database.execute("PRAGMA cell_size_check = ON")
    database.text_factory = _text
    return database


def _text(body: bytes) -> str:
    return body.decode(errors="replace")


def _described(database: sqlite3.Connection, name: str) -> str:
    try:
        columns = database.execute(_COLUMNS, (name,)).fetchall()
    except sqlite3.Error:  # a view that is broken, or calls what it may not
        return ""
    return f"{_quoted(name)}({', '.join(f'{_quoted(str(column))} {_kind(str(kind))}' for column, kind in columns)})"


def _quoted(name: str) -> str:
    plain = " ".join(name.split())  # a line for a table: what stands in a name is no line of ours
    return plain if name.isidentifier() and name.isascii() else f'"{plain.replace(chr(34), chr(34) * 2)}"'


def _kind(declared: str) -> str:
    """The affinity that SQLite gives a declared type."""
    upper = declared.upper()
    found = next((kind for part, kind in (*_KINDS, *_MORE_KINDS) if part in upper), None)
    return found or ("NUMERIC" if upper else "BLOB")
