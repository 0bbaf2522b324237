"""The built-in tools: exact, read-only, and confined to their folder."""

import asyncio
import json
import threading
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.team.schema import ModelRole, Team
from muster_agent.tools.calculate import NotComputable, calculate, value_of
from muster_agent.tools.corpus import read_corpus, search
from muster_agent.tools.database.csv_tables import query, read_table
from muster_agent.tools.database.select import QueryRefused
from muster_agent.tools.load import tools_for
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Invalid
from tests.unit.agent.teams import cloud, team

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_arithmetic_is_exact(a: object, b: object, c: object):
    x, y, z = (Fraction(str(number)) for number in (a, b, c))
    assert value_of(f"({a}) + ({b}) * ({c})") == x + y * z
    if z:
        assert value_of(f"(({a}) - ({b})) / ({c})") == (x - y) / z


@given(st.text(alphabet="0123456789.+-*/%() eabsroundmix,_jx'[]", max_size=60))
def test_any_text_is_computed_or_refused_with_a_reason(text: str):
    with suppress(NotComputable):
        assert calculate(text)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("0.1 + 0.2", "0.3"),
        ("2 ** 10", "1024"),
        ("1 / 3", "0.333333333333 (rounded)"),
        ("round(0.0416 * 730, 2)", "30.37"),
        ("avg(1, 2, 4) - -1", "3.33333333333 (rounded)"),
        ("max(1, 5) // 2 % 2", "0"),
        ("1e-3", "0.001"),
    ],
)
def test_the_calculator_computes(expression: str, result: str):
    assert calculate(expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        *("9**9**9", "1e999999999", "1e-999999999", "10**2400*10**2400", "1" * 2000, "-" * 900 + "1", "2**0.5", "1/0"),
        *(
            "__import__('os')",
            "x",
            "(1).real",
            "1,2",
            "True",
            "",
            "min()",
            "round(1, 99999999)",
            "(" * 150,
            "1 if 1 else 2",
        ),
    ],
)
def test_the_calculator_refuses_what_is_not_arithmetic_or_too_large(expression: str):
    with pytest.raises(NotComputable):
        calculate(expression)


def table(folder: Path, text: str = "# a note\nname,size,share\nx,1,0.5\ny,20,\n", name: str = "things.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_table_has_types_nulls_and_a_note(tmp_path: Path):
    found = read_table(table(tmp_path))

    assert str(found) == "things(name TEXT, size INTEGER, share REAL) -- a note"
    assert found.rows == (("x", 1, 0.5), ("y", 20, None))


@pytest.mark.parametrize("text", ["a b,c\n1,2\n", "a,a\n1,2\n", "a,b\n1\n", "", "a;DROP,b\n1,2\n"])
def test_a_broken_table_is_an_error_with_its_name(tmp_path: Path, text: str):
    with pytest.raises(Invalid, match="things"):
        read_table(table(tmp_path, text))


def test_a_select_gives_columns_and_rows(tmp_path: Path):
    found = json.loads(query([read_table(table(tmp_path))], "SELECT name, size * 2 AS twice FROM things ORDER BY size"))

    assert found == {"columns": ["name", "twice"], "rows": [["x", 2], ["y", 40]], "has_more_rows": False}


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM things",
        "INSERT INTO things VALUES (1,2,3)",
        "CREATE TABLE t (a)",
        "ATTACH 'other.db' AS other",
        "PRAGMA table_info(things)",
        "SELECT 1; SELECT 2",
        "SELECT load_extension('x')",
        "SELECT randomblob(1000000000)",
        "SELECT * FROM nothing",
        "",
        "nonsense",
        "SELECT count(*) FROM things a, things b, things c, things d, things e, things f, things g, things h, things i",
    ],
)
def test_anything_but_a_short_select_is_refused(tmp_path: Path, sql: str):
    rows = "\n".join(f"n{number},{number},1.5" for number in range(200))
    with pytest.raises(QueryRefused):
        query([read_table(table(tmp_path, f"name,size,share\n{rows}\n"))], sql)
    assert not (tmp_path / "other.db").exists()


def test_rows_beyond_the_limit_are_left_out_and_the_output_says_so(tmp_path: Path):
    rows = "\n".join(str(number) for number in range(150))
    found = json.loads(query([read_table(table(tmp_path, f"a\n{rows}\n"))], "SELECT a FROM things"))

    assert (len(found["rows"]), found["has_more_rows"]) == (100, True)


def test_the_corpus_finds_the_right_passage_and_never_leaves_its_folder(tmp_path: Path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.md").write_text("the password is swordfish")
    (inside / "link.md").symlink_to(outside / "secret.md")
    (inside / "linked").symlink_to(outside)
    (inside / "up.md").symlink_to("../out/secret.md")
    (inside / "fish.md").write_text("# Fish\n\n## Salmon\n\nIt swims upstream.\n\n## Pike\n\nIt waits.\n")

    passages = read_corpus(inside)

    assert {passage.file for passage in passages} == {"fish.md"}
    assert str(search(passages, "what does the salmon do?", 1)[0]) == "[fish.md] Fish > Salmon: It swims upstream."
    assert search(passages, "swordfish", 5) == []


def model_role(found: Team, name: str) -> ModelRole:
    role = found.role(name)
    assert isinstance(role, ModelRole)
    return role


def shout(words: str, times: int = 1) -> str:
    """Say it louder."""
    return words.upper() * times


async def test_a_function_becomes_a_tool_by_its_signature():
    tool = tool_of(shout)

    assert (tool.spec.name, tool.spec.description) == ("shout", "Say it louder.")
    assert tool.spec.schema["required"] == ["words"]
    assert tool.spec.schema["additionalProperties"] is False
    assert await tool.call({"words": "hey", "times": 2}) == "HEYHEY"


async def test_tools_that_hang_do_not_block_the_next_one():
    go = threading.Event()

    def hang() -> str:
        go.wait()
        return "at last"

    hanging = [asyncio.create_task(tool_of(hang).call({})) for _ in range(40)]  # more than any pool of the machine
    await asyncio.sleep(0)  # each has started
    try:
        async with asyncio.timeout(10):
            assert await tool_of(shout).call({"words": "hey"}) == "HEY"
    finally:
        go.set()
    assert await asyncio.gather(*hanging) == ["at last"] * 40


async def test_a_tool_by_import_path_is_found_beside_the_team_file(tmp_path: Path):
    (tmp_path / "own_tools.py").write_text("async def greet(name: str):\n    return {'hello': name}\n")
    found = team({"name": "a", "tools": ["own_tools:greet"]}, folder=tmp_path)

    tools = tools_for(model_role(found, "a"), found)

    assert await tools["greet"].call({"name": "you"}) == '{"hello": "you"}'


async def test_a_role_sees_only_its_own_tools_and_they_work_on_the_sample():
    found = cloud()
    tools = {role.name: tools_for(model_role(found, role.name), found) for role in found.roles}

    assert {name: list(each) for name, each in tools.items()} == {
        "researcher": ["search_corpus"],
        "analyst": ["query_database", "calculate"],
        "writer": ["format_document"],
    }
    assert "[azure.md]" in await tools["researcher"]["search_corpus"].call({"query": "Azure regions"})
    cheapest = "SELECT provider FROM prices ORDER BY vcpu_usd_per_hour LIMIT 1"
    assert "Google Cloud" in await tools["analyst"]["query_database"].call({"sql": cheapest})
    section = {"heading": "One", "body": "text"}
    document = await tools["writer"]["format_document"].call({"title": "T", "sections": [section]})
    assert document == "# T\n\n## One\n\ntext\n"
