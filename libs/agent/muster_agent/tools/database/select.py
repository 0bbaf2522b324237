"""Runs one SELECT in SQLite, within limits, and nothing else: what a query may do is asked for each step of it."""

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence

MAX_ROWS = 100  # more would fill the context window of a model
MAX_SECONDS = 2.0
MAX_SHOWN = 2000  # characters of a value
_MAX_VALUE_BYTES = 1_000_000
_STEPS_BETWEEN_CHECKS = 10_000
_FUNCTION_NAMES = (
    "abs avg ceil ceiling coalesce concat concat_ws count cume_dist date datetime dense_rank exp first_value floor "
    "glob group_concat hex ifnull iif instr julianday lag last_value lead length like ln log lower ltrim max min mod "
    "nth_value ntile nullif percent_rank pow power quote rank replace round row_number rtrim sign sqrt strftime "
    "string_agg substr substring sum time total trim typeof unicode unixepoch upper"
)
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_READS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))

Value = str | int | float | None


class QueryRefused(ValueError):
    """The query is not allowed or failed; the text says why."""


def select(database: sqlite3.Connection, sql: str, known: str) -> str:
    """The rows of one SELECT as JSON: columns, rows, and whether some were left out. `known` tells of the tables."""
    _guard(database)
    try:
        cursor = database.execute(sql)
        rows = cursor.fetchmany(MAX_ROWS + 1)
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise QueryRefused(f"the query took longer than {MAX_SECONDS:g} s and was stopped") from None
        raise QueryRefused(f"{error}; {known}") from None
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        raise QueryRefused(f"{error}; one SELECT on these tables may run: {known}") from None
    if cursor.description is None:
        raise QueryRefused(f"this is not a SELECT; {known}")
    return rows_text([str(column[0]) for column in cursor.description], rows)


def rows_text(columns: Sequence[str], rows: Sequence[Iterable[object]]) -> str:
    """What a model gets to see of the rows, of which there is one too many if not all are shown."""
    shown = [[_shown(value) for value in row] for row in rows[:MAX_ROWS]]
    return json.dumps({"columns": columns, "rows": shown, "has_more_rows": len(rows) > MAX_ROWS}, ensure_ascii=False)


def _shown(value: object) -> Value:
    if isinstance(value, int | float) or value is None:
        return value
    text = value if isinstance(value, str) else repr(value[:MAX_SHOWN]) if isinstance(value, bytes) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _guard(database: sqlite3.Connection) -> None:
    """Allow only reads, small values and short runs from here on."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    until = time.monotonic() + MAX_SECONDS
    database.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS_BETWEEN_CHECKS)

    def may(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
        is_known_function = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS
        return sqlite3.SQLITE_OK if action in _READS or is_known_function else sqlite3.SQLITE_DENY

    database.set_authorizer(may)
