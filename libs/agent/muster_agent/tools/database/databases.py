"""The tool that queries what a team has: its folder of tables, and the databases that its file names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Protocol

from pydantic import Field

from muster_agent.tools.database.csv_tables import MAX_FILE_BYTES, Table, query, read_tables
from muster_agent.tools.database.duck import read_duck
from muster_agent.tools.database.select import QueryRefused
from muster_agent.tools.database.sqlite_file import read_sqlite
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid
from muster_protocol.fields import nearest

TABLES = "tables"  # the name of the database that the team's folder of tables is


class Database(Protocol):
    """Something that answers SQL."""

    dialect: ClassVar[str]

    @property
    def tables(self) -> tuple[str, ...]:
        """Each with its columns."""
        ...

    def query(self, sql: str) -> str: ...


class CsvFolder:
    """CSV files, put into memory for each query."""

    dialect: ClassVar[str] = "SQLite"

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self._tables = tables
        self.tables = tuple(map(str, tables))

    def query(self, sql: str) -> str:
        return query(self._tables, sql)


def read_database(path: Path) -> Database:
    """What lies there: a folder of CSV and Parquet files, one such file, or a SQLite database."""
    if path.is_dir():
        return _folder(sorted((*path.glob("*.csv"), *path.glob("*.parquet"))), path)
    if path.suffix in (".csv", ".parquet"):
        return _folder([path], path)
    return read_sqlite(path)


def query_database_tool(databases: Mapping[str, Database]) -> Tool:
    """The tool over all of them; it asks which one is meant where there are several."""
    names = list(databases)
    if len(names) == 1:
        (only,) = databases.values()

        def query_database(sql: Annotated[str, Field(description=f"one {only.dialect} SELECT")]) -> str:
            return only.query(sql)

        listed = "\n".join(f"- {table}" for table in only.tables)
        return tool_of(query_database, f"Run one read-only SQL SELECT on the team's tables. Tables:\n{listed}")

    def query_databases(
        sql: Annotated[str, Field(description="one SELECT on the tables of that database")],
        database: Annotated[str, Field(description="which one", json_schema_extra={"enum": list(names)})],
    ) -> str:
        if database not in databases:
            raise QueryRefused(f"there is no database {database!r}{nearest(database, names)}")
        return databases[database].query(sql)

    query_databases.__name__ = "query_database"
    listed = "\n".join(
        "\n".join([f"Database {name} ({one.dialect}):", *(f"- {table}" for table in one.tables)])
        for name, one in databases.items()
    )
    return tool_of(query_databases, f"Run one read-only SQL SELECT on one of the team's databases.\n{listed}")


def _folder(files: list[Path], where: Path) -> Database:
    if all(file.suffix == ".csv" and file.stat().st_size <= MAX_FILE_BYTES for file in files):
        return CsvFolder(read_tables(files))
    named = {file.stem: file for file in files}
    if len(named) < len(files):
        raise Invalid("two files have the same name; each is a table", str(where))
    if odd := [name for name in named if not name.isidentifier() or not name.isascii()]:
        raise Invalid(f"{odd[0]!r} cannot be the name of a table: letters, digits and _ only", str(where))
    return read_duck(named, str(where))
