"""A folder with Parquet or large CSV files, asked by DuckDB in a process of its own.

DuckDB reads files and the network by functions of its SQL, and its limit on memory does not hold for every value. So
whatever a query does, it does to a process that has no secrets, little memory and a few seconds.
"""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from muster_agent.tools.database.select import QueryRefused, rows_text
from muster_protocol.errors import Invalid

MAX_SECONDS = 10.0  # of a query, with the start of its process
MAX_TABLES = 50
MAX_OUTPUT = 5_000_000  # bytes that a query may reply
_CHILD = "muster_agent.tools.database.duck_process"


@dataclass(frozen=True, slots=True)
class DuckFolder:
    """The files, by the names of their tables; `tables` says what their columns are."""

    files: Mapping[str, Path]
    tables: tuple[str, ...]

    dialect: ClassVar[str] = "DuckDB"

    def query(self, sql: str) -> str:
        reply = _ask(self.files, sql)
        if "error" in reply:
            raise QueryRefused(f"{reply['error']}; one SELECT on these tables may run: {'; '.join(self.tables)}")
        return rows_text(cast("Sequence[str]", reply["columns"]), cast("Sequence[Sequence[object]]", reply["rows"]))


def has_duckdb() -> bool:
    return importlib.util.find_spec("duckdb") is not None


def read_duck(files: Mapping[str, Path], where: str) -> DuckFolder:
    """The tables in these files; Invalid if one cannot be read."""
    if not has_duckdb():
        text = "has Parquet or large CSV files, which need the package duckdb: pip install 'muster-agent[duckdb]'"
        raise Invalid(text, where)
    if len(files) > MAX_TABLES:
        raise Invalid(f"has {len(files)} files; {MAX_TABLES} can be asked at once", where)
    try:
        reply = _ask(files, None)
    except QueryRefused as refused:
        raise Invalid(str(refused), where) from None
    if "error" in reply:
        raise Invalid(str(reply["error"]), where)
    return DuckFolder(files, tuple(map(str, cast("Sequence[str]", reply["tables"]))))


def _ask(files: Mapping[str, Path], sql: str | None) -> Mapping[str, Any]:
    asked = json.dumps({"files": {name: str(path) for name, path in files.items()}, "sql": sql})
    command, said = [sys.executable, "-I", "-m", _CHILD], asked.encode()
    try:
        ran = subprocess.run(command, input=said, capture_output=True, timeout=MAX_SECONDS, env={}, check=False)
    except subprocess.TimeoutExpired:
        raise QueryRefused(f"the query took longer than {MAX_SECONDS:g} s and was stopped") from None
    if len(ran.stdout) > MAX_OUTPUT:
        raise QueryRefused(f"the rows have more than {MAX_OUTPUT:,} bytes; select less of them")
    try:
        return cast("Mapping[str, Any]", json.loads(ran.stdout))
    except ValueError:
        raise QueryRefused("the query needed more memory or time than it may have; ask for less at once") from None
