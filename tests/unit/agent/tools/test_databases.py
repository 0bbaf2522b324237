"""Databases answer one SELECT, and nothing that writes, reads other files, waits or fills the memory."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from muster_agent.team.schema import ModelRole
from muster_agent.tools.database.databases import Database, query_database_tool, read_database
from muster_agent.tools.database.select import MAX_SECONDS, QueryRefused
from muster_agent.tools.load import tools_for
from muster_protocol.errors import Invalid
from tests.guards import guards
from tests.unit.agent.teams import team

HOSTILE = [
    "DELETE FROM orders",
    "INSERT INTO orders VALUES (1)",
    "CREATE TABLE t (a)",
    "DROP TABLE orders",
    "UPDATE orders SET usd = 0",
    "ATTACH 'other.db' AS other",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('x', 'y')",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE orders",
    "VACUUM INTO 'other.db'",
    "BEGIN",
    "SELECT randomblob(1000000000)",
    "SELECT * FROM gone",
    "",
    "\x00",
    "nonsense",
]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE orders (id INTEGER, region VARCHAR(20), usd DECIMAL(10, 2), "by whom" TEXT)')
        rows = [(1, "north", 10.5, "ada"), (2, "south", 20, None), (3, "north", 4.5, "bob")]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
        database.execute("CREATE VIEW north AS SELECT * FROM orders WHERE region = 'north'")
    return path


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT i AS id, 'r' || i AS region, i * 1.5 AS usd FROM range(200) r(i))"
            f" TO '{folder}/orders.parquet'"
        )
    (folder / "notes.csv").write_text("# what was said\nid,text\n1,good\n2,bad\n")
    return folder


def rows(database: Database, sql: str) -> list[list[Any]]:
    return json.loads(database.query(sql))["rows"]


def test_a_sqlite_file_is_asked_as_it_is_now(shop: Path):
    database = read_database(shop)

    assert database.tables == (
        'north(id INTEGER, region TEXT, usd NUMERIC, "by whom" TEXT)',
        'orders(id INTEGER, region TEXT, usd NUMERIC, "by whom" TEXT)',
    )
    assert rows(database, "SELECT region, sum(usd) FROM orders GROUP BY region ORDER BY 1") == [
        ["north", 15],
        ["south", 20],
    ]
    with closing(sqlite3.connect(shop)) as other, other:
        other.execute("DELETE FROM orders WHERE id = 2")
    assert rows(database, "SELECT count(*) FROM orders") == [[2]]
    assert rows(database, "SELECT date('2026-01-31', '+1 day')") == [["2026-02-01"]]


@guards("libs/agent/muster_agent/tools/database/select.py", "database.set_authorizer(may)", rule="I10")
@pytest.mark.parametrize("sql", HOSTILE)
def test_a_sqlite_file_is_only_read(shop: Path, sql: str):
    before = shop.read_bytes()
    with pytest.raises(QueryRefused):
        read_database(shop).query(sql)
    assert shop.read_bytes() == before
    assert [path.name for path in shop.parent.iterdir()] == [shop.name]


@guards(
    "libs/agent/muster_agent/tools/database/select.py",
    "lambda: int(time.monotonic() > until)",
    rule="I4",
    replace="lambda: 0",
    seconds=20,
)
@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT max(i) FROM n",
    ],
)
def test_a_query_without_end_is_stopped(shop: Path, sql: str):
    began = time.monotonic()
    with pytest.raises(QueryRefused, match="took longer than 2 s"):
        read_database(shop).query(sql)
    assert time.monotonic() - began < MAX_SECONDS + 10


def test_a_view_of_somebody_else_calls_nothing(shop: Path):
    with closing(sqlite3.connect(shop)) as other, other:
        other.execute("CREATE VIEW trap AS SELECT load_extension('x') AS a")
    with pytest.raises(QueryRefused):
        read_database(shop).query("SELECT * FROM trap")


def test_a_long_value_is_cut(shop: Path):
    with closing(sqlite3.connect(shop)) as other, other:
        other.execute("UPDATE orders SET region = ?", ("x" * 100_000,))
    assert len(rows(read_database(shop), "SELECT region FROM orders")[0][0]) == 2001


@pytest.mark.parametrize(
    "body",
    [b"", b"no database at all, and long enough to look like one" * 100, b"SQLite format 3\x00" + b"\xff" * 4000],
)
def test_what_is_no_database_is_a_mistake_with_its_name(tmp_path: Path, body: bytes):
    (tmp_path / "broken.sqlite").write_bytes(body)
    with pytest.raises(Invalid, match=r"broken.sqlite: (is no SQLite|has no table)"):
        read_database(tmp_path / "broken.sqlite")


def test_parquet_and_csv_beside_it_are_asked_by_duckdb(parquet: Path):
    database = read_database(parquet)

    assert database.tables == ("notes(id INTEGER, text TEXT)", "orders(id INTEGER, region TEXT, usd REAL)")
    joined = "SELECT o.region, n.text FROM orders o JOIN notes n USING (id) ORDER BY 1"
    assert rows(database, joined) == [["r1", "good"], ["r2", "bad"]]
    found = json.loads(database.query("SELECT id FROM orders"))
    assert (len(found["rows"]), found["has_more_rows"]) == (100, True)


@guards(
    "libs/agent/muster_agent/tools/database/duck_process.py",
    'database.execute("SET enable_external_access = false")',
    rule="I10",
)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('https://example.org/a.csv')",
        "SELECT * FROM glob('/*')",
        "COPY orders TO 'out.csv'",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 8",
        "SET enable_external_access = true",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT getenv('HOME')",
        "",
        "\x00",
    ],
)
def test_duckdb_reads_nothing_but_its_tables(parquet: Path, sql: str):
    before = sorted(path.name for path in parquet.iterdir())
    with pytest.raises(QueryRefused, match="one SELECT on these tables may run: notes"):
        read_database(parquet).query(sql)
    assert sorted(path.name for path in parquet.iterdir()) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 6000000000)",
        pytest.param(
            "SELECT count(DISTINCT a.range + b.range) FROM range(1000000) a, range(1000000) b", marks=pytest.mark.sweep
        ),
    ],
)
def test_a_query_that_takes_all_memory_or_time_costs_only_its_process(parquet: Path, sql: str):
    database = read_database(parquet)
    began = time.monotonic()
    with pytest.raises(QueryRefused):
        database.query(sql)
    assert time.monotonic() - began < 20
    assert rows(database, "SELECT count(*) FROM orders") == [[200]]


@pytest.mark.sweep
def test_a_csv_file_of_100_mb_is_asked_by_duckdb(tmp_path: Path):
    line = "north,12.5," + "x" * 80 + "\n"
    with (tmp_path / "big.csv").open("w") as file:
        file.write("region,usd,text\n")
        for _ in range(1_100):
            file.write(line * 1_000)
    database = read_database(tmp_path)

    assert rows(database, "SELECT region, count(*), sum(usd) FROM big GROUP BY 1") == [["north", 1_100_000, 13_750_000]]


def test_a_csv_file_over_the_limit_goes_to_duckdb(tmp_path: Path):
    (tmp_path / "big.csv").write_text("region,usd,text\n" + ("north,2," + "x" * 992 + "\n") * 20_100)
    database = read_database(tmp_path)

    assert database.dialect == "DuckDB"
    assert rows(database, "SELECT region, sum(usd) FROM big GROUP BY 1") == [["north", 40_200]]


async def test_a_role_asks_one_of_several_databases(shop: Path, parquet: Path):
    found = team(
        {"name": "analyst", "tools": ["query_database"]},
        folder=shop.parent,
        tables=str(parquet),
        databases={"shop": "shop.sqlite"},
    )
    (role,) = found.roles
    assert isinstance(role, ModelRole)
    tool = tools_for(role, found)["query_database"]

    assert tool.spec.schema["properties"]["database"]["enum"] == ["tables", "shop"]
    assert "Database shop (SQLite):\n- north(" in tool.spec.description
    assert json.loads(await tool.call({"sql": "SELECT count(*) FROM orders", "database": "shop"}))["rows"] == [[3]]
    assert json.loads(await tool.call({"sql": "SELECT count(*) FROM orders", "database": "tables"}))["rows"] == [[200]]
    with pytest.raises(QueryRefused, match="no database 'shops'; did you mean 'shop'"):
        await tool.call({"sql": "SELECT 1", "database": "shops"})


def test_one_database_needs_no_name(shop: Path):
    assert "database" not in query_database_tool({"shop": read_database(shop)}).spec.schema["properties"]
