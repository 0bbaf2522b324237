"""Bad team files, each with what is said about it: file, line, path, role, and the way out."""

import textwrap
from pathlib import Path

import pytest

from muster_agent.team.checking.mistakes import TeamMistakes
from muster_agent.team.checking.role_code import role_code
from muster_agent.team.file import load_team
from muster_protocol.errors import Invalid
from tests.guards import guards
from tests.unit.agent.bad_processes import CASES as MORE
from tests.unit.agent.bad_teams import CASES, GOOD
from tests.unit.agent.bad_tools import CASES as OF_TOOLS

CODE = """
import threading
from nowhere_to_be_found import thing
"""
ROLES = """
from __future__ import annotations
import threading

class Worker: ...
async def fine(task, ctx): return 1
def alone(task): return 1
def three(task, ctx, more): return 1
async def drops(task, ctx):
    yield 1
def look_up(name: str, lock: threading.Lock) -> str: return name
def unnamed(name: Missing) -> str: return name
def many(*names): return names
def hidden(_name: str) -> str: return _name
def keyless(name: str) -> str: return name
def cannot_do(name: str) -> str: return name
"""
PYDANTIC = ("should", "valid tuple", "Input", "pattern", "^[", "errors.pydantic", "_parsing")
TEN = """\
team: the shop
supervisor: {model: gpt-9}
roles:
  - name: clerk
    tags: research
    tools: [calculator]
    slots: 0
  - name: till
    run: nowhere_at_all:count
    model: auto
  - name: till
    slotz: 4
limits:
  deadline_seconds: .inf
  in_flight: 1
  in_flight: 2
corpus: missing
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    name = module_in(tmp_path)
    (tmp_path / f"{name}.py").write_text(ROLES)
    (tmp_path / f"{name}_bad.py").write_text(CODE)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.csv").write_text("a,b\n1\n")
    return tmp_path


def module_in(folder: Path) -> str:
    return f"roles_{folder.name.replace('-', '_')}"


@pytest.mark.parametrize(
    ("text", "said"),
    [pytest.param(text, said, id=label) for label, text, said in (*CASES, *MORE, *OF_TOOLS)],
)
@guards(
    "libs/agent/muster_agent/team/strict.py", ", allow_inf_nan=False", rule="I10", replace="", case="endless deadline"
)
def test_a_mistake_is_said_in_plain_words_with_its_place(folder: Path, text: str, said: str):
    file = folder / "team.yaml"
    file.write_text(text.replace("NAME", module_in(folder)))

    with pytest.raises(TeamMistakes) as caught:
        load_team(file, role_code())

    (line,) = caught.value.lines
    expected = said.replace("NAME", module_in(folder)).replace("HERE", str(folder))
    assert line.startswith(f"{file}{expected}"), line
    assert [word for word in PYDANTIC if word in line.removeprefix(str(file))] == []
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_a_file_are_said_at_once_in_the_order_of_the_file(tmp_path: Path):
    (tmp_path / "team.yaml").write_text(TEN)

    with pytest.raises(Invalid) as caught:
        load_team(tmp_path / "team.yaml", role_code())

    title, *lines = str(caught.value).splitlines()
    assert title == f"12 mistakes in {tmp_path}/team.yaml:"
    assert [line.removeprefix(f"{tmp_path}/team.yaml:").split(": ")[:2] for line in lines] == [
        ["1", "team"],
        ["2", "supervisor.model"],
        ["5", "roles.0.tags (clerk)"],
        ["6", "roles.0.tools.0 (clerk)"],
        ["7", "roles.0.slots (clerk)"],
        ["9", "roles.1.run (till)"],
        ["10", "roles.1.model (till)"],
        ["11", "roles.2.name (till)"],
        ["12", "roles.2.slotz (till)"],
        ["14", "limits.deadline_seconds"],
        ["16", "limits.in_flight"],
        ["17", "corpus"],
    ]


@guards(
    "libs/agent/muster_agent/team/checking/role_code.py",
    ' if only is None or role.get("name") in only',
    rule="I10",
    replace="",
)
def test_who_runs_one_role_does_not_need_the_code_of_the_others(folder: Path):
    good = textwrap.dedent(f"""
        team: t
        roles:
          - {{name: mine, run: '{module_in(folder)}:fine'}}
          - {{name: theirs, run: 'installed.elsewhere:f'}}
    """)
    (folder / "team.yaml").write_text(good)

    assert load_team(folder / "team.yaml").team == "t"
    assert load_team(folder / "team.yaml", role_code(["mine"])).team == "t"
    with pytest.raises(Invalid, match=r"roles\.1\.run \(theirs\)"):
        load_team(folder / "team.yaml", role_code())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    (tmp_path / "team.yaml").write_bytes(b"team: \xff")

    with pytest.raises(Invalid, match=r"team\.yaml: not a text file in UTF-8"):
        load_team(tmp_path / "team.yaml")
    with pytest.raises(Invalid, match=r"none\.yaml: cannot read the team file: No such file"):
        load_team(tmp_path / "none.yaml")


def test_a_file_that_repeats_itself_a_million_times_is_read_at_once(tmp_path: Path):
    bomb = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (tmp_path / "team.yaml").write_text(GOOD + bomb)

    with pytest.raises(TeamMistakes) as caught:
        load_team(tmp_path / "team.yaml")

    assert len(caught.value.mistakes) == 9
    assert len(str(caught.value)) < 4000
