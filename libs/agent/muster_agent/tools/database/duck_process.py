"""`python -m muster_agent.tools.database.duck_process`: one question to DuckDB, from stdin, answered on stdout.

The process limits itself before it reads a file, and DuckDB before it sees the query: no file but the team's own, no
network, no extension, no setting changed.
"""

import json
import resource
import sys
from collections.abc import Mapping
from typing import Any

import duckdb

MAX_MEMORY = 4 * 1024**3  # bytes of addresses, of which DuckDB reserves more than it uses
DUCK_MEMORY = "512MB"
MAX_CPU_SECONDS = 30  # of both threads, also when nobody waits any more
MAX_ROWS = 101  # one more than are shown
MAX_TEXT = 2001  # characters of a value, as above
_KINDS = {"VARCHAR": "TEXT", "FLOAT": "REAL", "DOUBLE": "REAL"}
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    "memory_limit": DUCK_MEMORY,
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the limit is none, or the process cannot start threads under it
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    asked = json.loads(sys.stdin.buffer.read())
    try:
        reply = _answer(asked["files"], asked["sql"])
    except duckdb.Error as error:
        reply = {"error": str(error).split("\n")[0][:1000]}
    sys.stdout.write(json.dumps(reply))


def _answer(files: Mapping[str, str], sql: str | None) -> Mapping[str, Any]:
    database = duckdb.connect(":memory:", config=_LOCKED)
    for name, path in files.items():
        reader = "read_parquet(?)" if path.endswith(".parquet") else "read_csv(?, comment='#')"
        rows = database.sql(f"SELECT * FROM {reader}", params=[path])
        rows.create_view(name)
    database.execute("SET allowed_paths = ?", [list(files.values())])
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return {"tables": [_described(database, name) for name in files]} if sql is None else _rows(database, sql)


def _rows(database: duckdb.DuckDBPyConnection, sql: str) -> Mapping[str, Any]:
    statements = database.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        return {"error": "this is not one SELECT"}
    found = database.execute(statements[0])
    columns = [str(column[0]) for column in found.description or ()]
    return {"columns": columns, "rows": [[_plain(value) for value in row] for row in found.fetchmany(MAX_ROWS)]}


def _described(database: duckdb.DuckDBPyConnection, name: str) -> str:
    columns = database.execute(f'DESCRIBE "{name}"').fetchall()
    return f"{name}({', '.join(f'{column} {_kind(kind)}' for column, kind, *_ in columns)})"


def _kind(kind: str) -> str:
    """As SQLite calls it where that has the type too."""
    is_whole = kind.endswith(("INT", "INTEGER"))
    return "INTEGER" if is_whole else "REAL" if kind.startswith("DECIMAL") else _KINDS.get(kind, kind)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float) or value is None else str(value)[:MAX_TEXT]


if __name__ == "__main__":
    main()
