"""Reading a team file, and the errors for what is wrong in it."""

from pathlib import Path

import pytest

from muster_agent.functions import load_function
from muster_agent.team.file import load_team, team_of
from muster_agent.team.schema import FunctionRole, ModelRole
from muster_protocol.errors import Invalid
from muster_protocol.plan import Retry
from tests.unit.agent.teams import CLOUD, FUNCTIONS, team


def test_the_examples_load():
    cloud, functions = load_team(CLOUD), load_team(FUNCTIONS)

    assert [role.name for role in cloud.roles] == ["researcher", "analyst", "writer"]
    assert all(isinstance(role, ModelRole) for role in cloud.roles)
    assert cloud.corpus == CLOUD.parent / "corpus"
    assert all(isinstance(role, FunctionRole) for role in functions.roles)


def test_a_role_is_tagged_by_its_name_and_found_by_its_tags():
    found = team({"name": "a", "tags": ["x", "y"]}, {"name": "b", "tags": ["x"]})

    assert found.tags == ("a", "x", "y", "b")
    assert [role.name for role in found.roles_matching(["x"])] == ["a", "b"]
    assert [role.name for role in found.roles_matching(["x"], ["y", "z"])] == ["a"]
    assert found.roles_matching(["x", "b"], ["y"]) == ()
    with pytest.raises(Invalid, match="did you mean 'a'"):
        found.role("aa")


def test_limits_that_are_not_set_have_defaults():
    limits = team({"name": "a"}).limits

    assert (limits.in_flight, limits.deadline_seconds) == (32, 600)
    assert (limits.task_timeout_seconds, limits.max_attempts) == (300, 3)


def test_what_a_role_says_about_retries_comes_before_what_the_team_says_and_no_function_is_described_anew():
    found = team(
        {"name": "model", "tags": ["both"], "retry": {"max_attempts": 5}},
        {"name": "function", "tags": ["both"], "run": "roles:f"},
        retry={"max_attempts": 2, "backoff_seconds": 1.5},
    )

    assert found.retry_of("model") == Retry(max_attempts=5, backoff_seconds=1.5)
    assert found.retry_of("function") == Retry(max_attempts=2, backoff_seconds=1.5, refine=False)
    assert found.retry_of("both") == Retry(max_attempts=5, backoff_seconds=1.5, refine=False)


@pytest.mark.parametrize("content", ["- a list", "{", ""])
def test_a_file_that_is_not_a_team_is_an_error_with_its_path(tmp_path: Path, content: str):
    (tmp_path / "team.yaml").write_text(content)
    with pytest.raises(Invalid, match=r"team\.yaml"):
        load_team(tmp_path / "team.yaml")
    with pytest.raises(Invalid, match="cannot read"):
        load_team(tmp_path / "none.yaml")


def test_a_function_beside_the_team_file_is_found(tmp_path: Path):
    (tmp_path / "beside_here.py").write_text("def answer(): return 42\n")

    assert load_function("beside_here:answer", tmp_path)() == 42
    with pytest.raises(Invalid, match="no function 'question'"):
        load_function("beside_here:question", tmp_path)
    with pytest.raises(Invalid, match="cannot import"):
        load_function("not_there_at_all:f", tmp_path)


def test_a_module_whose_name_another_team_uses_is_refused(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "samename.py").write_text(f"def which(): return {name!r}\n")

    assert load_function("samename:which", tmp_path / "one")() == "one"
    with pytest.raises(Invalid, match="rename"):
        load_function("samename:which", tmp_path / "two")


@pytest.mark.parametrize(("key", "seconds"), [("request_lease_seconds", 0.5), ("task_lease_seconds", 4000)])
def test_a_lease_out_of_bounds_is_refused_by_name(key: str, seconds: float):
    raw = {"team": "t", "roles": [{"name": "r"}], "limits": {key: seconds}}

    with pytest.raises(Invalid, match=f"limits.{key}"):
        team_of(raw, Path())


def test_lettas_words_for_the_steps_of_an_agent_are_read_as_turns():
    found = team(
        {"name": "a", "max_chaining_steps": 4}, {"name": "b", "chaining": False}, {"name": "c", "chaining": True}
    )

    assert [role.max_turns for role in found.roles if isinstance(role, ModelRole)] == [4, 2, 10]
    with pytest.raises(Invalid, match="max_chaining_steps and max_turns are the same; write max_turns"):
        team({"name": "a", "max_chaining_steps": 4, "max_turns": 3})
    with pytest.raises(Invalid, match="chaining: false is max_turns: 2; write max_turns alone"):
        team({"name": "a", "chaining": False, "max_turns": 3})
    with pytest.raises(Invalid, match="chaining is true or false"):
        team({"name": "a", "chaining": "perhaps"})
