"""A team of one's own: what `muster init` makes works at once, and each part of it can be tried alone."""

import asyncio
import json
from pathlib import Path

import pytest

from muster_testing.messages_server import message, running_messages_server, text, tool_use
from tests.flow.command_line import Here
from tests.flow.test_readme import python

QUESTION = "Which apples and pears are in the shop?"


@pytest.fixture
def shop(tmp_path: Path) -> Here:
    """The folder that `muster init shop` makes."""
    above = Here(tmp_path)
    made = above.run("init", "shop")
    assert made.returncode == 0, made.stderr
    shop = Here.__new__(Here)
    shop.folder, shop.env = tmp_path / "shop", above.env
    return shop


def test_it_has_everything_and_says_the_next_commands(tmp_path: Path):
    here = Here(tmp_path)

    made = here.run("init", "shop")

    files = {path.name for path in (tmp_path / "shop").iterdir()}
    assert files == {"team.yaml", "tools.py", "roles.py", "test_team.py", ".gitignore", "Dockerfile"}
    lines = (tmp_path / "shop" / "Dockerfile").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["#", "FROM", "WORKDIR", "COPY", "ENV", "CMD"]
    enter, *commands = [line.partition("     #")[0].strip() for line in made.stdout.splitlines()[2:]]
    assert enter == "cd shop"
    assert [command.partition("muster ")[2] for command in commands] == [
        "role try clerk 'How many apples are there?'",
        "up",
        f"ask '{QUESTION}'",
    ]


def test_its_test_passes_with_plain_pytest_and_without_a_model(shop: Here):
    ran = python(shop, "-W", "ignore", "-m", "pytest", "-q", "-o", "addopts=")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


def test_up_and_ask_work_there_at_once(shop: Here):
    assert shop.document("check")["warnings"] == []
    with shop.up() as (_, welcome):
        asked = shop.run("ask", QUESTION)

    assert f"ask '{QUESTION}'" in welcome
    assert json.loads(asked.stdout) == {"apples": 48.0, "pears": 21.0}


def test_nothing_is_overwritten(shop: Here):
    before = {path: path.read_bytes() for path in shop.folder.iterdir()}

    again = shop.run("init", ".")

    assert again.returncode == 2
    assert "there is a team.yaml already, and nothing is overwritten; name another folder" in again.stderr
    assert {path: path.read_bytes() for path in shop.folder.iterdir()} == before


def test_the_files_that_a_project_has_already_are_kept(tmp_path: Path):
    here = Here(tmp_path)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "Dockerfile").write_text("FROM mine")

    made = here.run("init", "project", "--name", "my-team")

    assert made.stdout.startswith("made in project: team.yaml, tools.py, roles.py, test_team.py, .gitignore; kept")
    assert (tmp_path / "project" / "Dockerfile").read_text() == "FROM mine"
    assert "\nteam: my-team\n" in (tmp_path / "project" / "team.yaml").read_text()


def test_a_name_that_is_none_is_refused_and_nothing_is_made(tmp_path: Path):
    ran = Here(tmp_path).run("init", "shop", "--name", "my shop")

    assert ran.returncode == 2
    assert "--name: 'my shop' cannot be a team's name: use 1 to 64 letters" in ran.stderr
    assert not (tmp_path / "shop").exists()


def test_a_role_that_is_tried_shows_its_prompt_turns_tools_and_output(shop: Here):
    ran = shop.run("role", "try", "clerk", "How many apples are there?")

    assert ran.returncode == 0, ran.stderr
    for words in (
        "── system ──",
        "You are a shop clerk.",
        "── user ──",
        "Task: How many apples are there?",
        "── tools: stock_of ──",
        "── turn 1 · offline (rule-based, not an LLM) · ",
        '→ stock_of {"article": "How many apples are there?"}\n← 120 apples\n',
        "── output · ",
    ):
        assert words in ran.stdout
    assert "no ANTHROPIC_API_KEY" in ran.stderr


async def test_with_a_model_its_turns_and_what_they_cost_are_in_the_document(shop: Here):
    team = shop.folder / "team.yaml"
    team.write_text(f"{team.read_text()}\nprices: {{claude-sonnet-5-5: {{input: 2, output: 10}}}}\n")
    call = message(text("I look."), tool_use("c1", "stock_of", article="pears"), stop="tool_use")
    async with running_messages_server(call, message(text("35 pears"))) as server:
        options = ("--inputs", '{"unit": "pieces"}', "--model", "claude-sonnet-5-5")
        words = ("role", "try", "clerk", *options, "How many?", "--json")
        ran = await asyncio.to_thread(shop.run, *words, **server.environment)
    document = json.loads(ran.stdout)

    assert (document["status"], document["output"], document["model"]) == ("done", "35 pears", "claude-sonnet-5-5")
    assert "unit" in document["user"]
    first, last = document["turns"]
    assert first["text"] == "I look."
    assert first["calls"] == [
        {"tool": "stock_of", "arguments": {"article": "pears"}, "output": "35 pears", "is_error": False}
    ]
    assert last["text"] == "35 pears"
    assert document["usage"]["model_calls"] == 2
    assert document["usage"]["usd"] > 0


def test_a_function_gets_inputs_and_outputs_and_its_failure_has_its_class(shop: Here):
    options = ("--outputs", '{"look": "120 apples"}', "--json")
    done = shop.document("role", "try", "till", "Add up", *options[:2])
    failed = shop.run("role", "try", "till", "Add up")

    assert (done["output"], done["progress"], done["turns"]) == ({"apples": 48.0}, ["1 articles"], [])
    assert failed.returncode == 1
    assert "── failed (logic) · " in failed.stdout
    assert "there is nothing to add up" in failed.stdout
    assert "roles.py" in failed.stdout


def test_a_tool_that_is_tried_shows_what_a_model_sees_of_it(shop: Here):
    ran = shop.run("tool", "try", "stock_of", '{"article": "apples"}')
    built_in = shop.document("tool", "try", "calculate", '{"expression": "6 * 7"}')

    assert ran.returncode == 0, ran.stderr
    assert "How many pieces of an article are in the shop.\n" in ran.stdout
    assert ran.stdout.endswith("\n120 apples\n")
    assert built_in["output"] == "42"
    assert built_in["schema"]["required"] == ["expression"]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("role", "try", "clark", "hi"), 2, "no role 'clark' in team 'shop'; did you mean 'clerk'? known: clerk, till"),
        (("role", "try", "clerk", "hi", "--inputs", "1"), 2, "--inputs: '1' is no JSON object; write an object in"),
        (("tool", "try", "stok_of", "{}"), 2, "no tool 'stok_of' in team 'shop'; did you mean 'stock_of'?"),
        (("tool", "try", "stock_of", "{"), 2, "JSON: '{' is not JSON ("),
        (("tool", "try", "stock_of", '{"articel": "a"}'), 2, "bad arguments: article: Field required; articel: "),
        (("tool", "try", "tols:stock_of", "{}"), 2, "No module named 'tols'; did you mean 'tools'? Looked for in "),
        (("tool", "try", "tools:stok_of", "{}"), 2, "'tools' has no function 'stok_of'; did you mean 'stock_of'?"),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(shop: Here, words: tuple[str, ...], code: int, reason: str):
    ran = shop.run(*words)

    assert ran.returncode == code
    assert reason in ran.stdout + ran.stderr


def test_the_code_of_another_role_need_not_be_importable(shop: Here):
    (shop.folder / "roles.py").write_text("import nowhere_at_all")

    assert shop.run("role", "try", "clerk", "How many apples?").returncode == 0
    broken = shop.run("role", "try", "till", "Add up")

    assert broken.returncode == 2
    assert "roles itself is there: mend what it imports, or install it here" in broken.stderr
