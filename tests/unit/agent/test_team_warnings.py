"""What is allowed in a team file and seldom meant."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from muster_agent.team.checking.warnings import MANY_TOOLS, many_tools, shared_tools, warnings_in
from tests.flow.command_line import Here

TEAM = """\
team: t
roles:
  - name: a
    tools: [calculate, format_document]
  - name: b
    tools:
      - format_document
      - {use: calculate}
"""
TOOLS = st.lists(st.sampled_from([f"tools:f{n}" for n in range(20)]), unique=True)


@given(st.lists(TOOLS, max_size=5))
def test_each_tool_is_named_once_for_each_role_that_has_it_after_the_first(lists: list[list[str]]):
    raw = {"roles": [{"name": f"r{n}", "tools": tools} for n, tools in enumerate(lists)]}

    found = list(shared_tools(raw))

    assert len(found) == sum(map(len, lists)) - len({tool for tools in lists for tool in tools})
    for mistake in found:
        _, role, _, place = mistake.place
        assert mistake.reason.startswith(f"{lists[int(role)][int(place)]} is a tool of ")


@given(st.integers(0, 2 * MANY_TOOLS))
def test_a_role_has_many_tools_from_the_sixteenth_on(count: int):
    found = list(many_tools({"roles": [{"name": "a", "tools": [f"tools:f{n}" for n in range(count)]}]}))

    assert [mistake.place for mistake in found] == ([("roles", 0, "tools")] if count > 15 else [])


def test_warnings_have_the_line_and_the_role(tmp_path: Path):
    (tmp_path / "team.yaml").write_text(TEAM)

    assert [(warning.line, warning.path, warning.role) for warning in warnings_in(tmp_path / "team.yaml")] == [
        (7, "roles.1.tools.0", "b"),
        (8, "roles.1.tools.1", "b"),
    ]


def test_a_file_that_says_nothing_has_no_warnings(tmp_path: Path):
    (tmp_path / "team.yaml").write_bytes(b"\xff")

    assert warnings_in(tmp_path / "team.yaml") == warnings_in(tmp_path / "nowhere.yaml") == []


def test_check_says_warnings_beside_mistakes_and_ends_with_0_where_there_are_only_warnings(tmp_path: Path):
    here = Here(tmp_path)
    (tmp_path / "team.yaml").write_text(TEAM.replace("{use: calculate}", "calculate"))

    ran, document = here.run("check"), here.document("check")
    (tmp_path / "team.yaml").write_text(TEAM.replace("{use: calculate}", "calculator"))
    mistaken = here.run("check")

    assert ran.returncode == 0
    assert "warning: " in ran.stderr
    assert "team.yaml:7: roles.1.tools.0 (b): format_document is a tool of 'a' too" in ran.stderr
    assert "is fine: team t" in ran.stdout
    assert [warning["line"] for warning in document["warnings"]] == [7, 8]
    assert document["mistakes"] == []
    assert mistaken.returncode == 2
    assert "unknown tool 'calculator'" in mistaken.stderr
    assert "warning: " in mistaken.stderr
