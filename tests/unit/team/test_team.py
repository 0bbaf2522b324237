"""A team in Python and a team file say the same."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster import Context, Invalid, Role, Task, Team, role, tool
from muster.marks import FunctionKeys, ModelKeys
from muster.team import TeamKeys
from muster_agent.team.checking.mistakes import TeamMistakes
from muster_agent.team.file import load_team, team_of
from muster_agent.team.schema import FunctionRole, ModelRole
from muster_agent.team.schema import Team as TeamSpec

NAMES = st.text("abcdefgh-_", min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


def part(needed: dict[str, Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(needed, optional=optional)


def name_of(role: dict[str, Any]) -> str:
    return role["name"]


ROLES = part(
    {"name": NAMES},
    tags=st.lists(NAMES, max_size=3),
    description=TEXTS,
    persona=TEXTS,
    slots=st.integers(1, 9),
    tools=st.lists(st.sampled_from(["calculate", "format_document"]), unique=True, max_size=2),
    retry=part({}, max_attempts=st.integers(1, 5)),
    spawns=st.booleans(),
    timeout_seconds=st.none() | st.floats(1, 9),
)
TEAMS = part(
    {"team": NAMES, "roles": st.lists(ROLES, min_size=1, max_size=4, unique_by=name_of)},
    limits=part({}, depth=st.integers(0, 3)),
    priorities=part({}, preempt=st.booleans()),
    callbacks=st.just({"hosts": ["example.org"], "private": ["127.0.0.1/32"]}),
    supervisor=part({}, persona=TEXTS, approve=st.booleans()),
    prices=st.just({"claude-sonnet-5-5": {"input": 2, "output": 10}}),
    examples=st.lists(TEXTS, max_size=2),
)
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


@SLOW
@given(raw=TEAMS)
def test_a_team_that_is_written_to_a_file_is_the_same_when_it_is_read(tmp_path: Path, raw: dict[str, Any]):
    (tmp_path / "team.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    team = Team.from_file(tmp_path / "team.yaml")

    team.to_file(tmp_path / "again.yaml", replace=True)

    again = load_team(tmp_path / "again.yaml")
    assert again == team.spec == team_of(raw, tmp_path)
    assert ["slots" in role.model_fields_set for role in again.roles] == ["slots" in role for role in raw["roles"]]


@SLOW
@given(raw=TEAMS)
def test_a_team_that_is_made_in_python_is_that_of_the_file(tmp_path: Path, raw: dict[str, Any]):
    name, roles, keys = raw["team"], raw["roles"], {key: raw[key] for key in raw.keys() - {"team", "roles"}}

    assert Team(name, [Role(**each) for each in roles], folder=tmp_path, **keys).spec == team_of(raw, tmp_path)


def test_functions_become_import_paths_and_their_names_and_docstrings_are_the_roles(beside: Any, tmp_path: Path):
    clerk = Role("clerk", tools=[beside.stock_of, "calculate"])

    Team("shop", [clerk, beside.till], tables=tmp_path, folder=tmp_path).to_file(tmp_path / "team.yaml")

    assert yaml.safe_load((tmp_path / "team.yaml").read_text()) == {
        "team": "shop",
        "tables": ".",
        "roles": [
            {"name": "clerk", "tools": ["own_tools:stock_of", "calculate"]},
            {
                "name": "till",
                "tags": ["worth"],
                "description": "Computes what the stock",
                "run": "own_tools:till",
                "inputs": {"article": "its name"},
            },
        ],
    }


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module beside the team file, as a program imports it."""
    (tmp_path / "own_tools.py").write_text(Path(__file__).with_name("own_tools.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_tools", raising=False)
    module = __import__("own_tools")
    monkeypatch.setitem(sys.modules, "own_tools", module)
    return module


def test_the_files_of_providers_are_written_as_seen_from_the_team_file(tmp_path: Path):
    providers = {"p": {"kind": "mock", "replies_file": "replies.yaml"}, "q": {"kind": "openai", "api_key_file": "k"}}
    team = Team("t", [Role("a", model=["p/x", "q/y"])], folder=tmp_path, providers=providers)

    team.to_file(tmp_path / "team.yaml")

    assert yaml.safe_load((tmp_path / "team.yaml").read_text())["providers"] == providers
    assert load_team(tmp_path / "team.yaml") == team.spec


def test_a_file_in_another_folder_than_the_functions_is_refused(beside: Any, tmp_path: Path):
    (tmp_path / "other").mkdir()
    with pytest.raises(Invalid, match=r"own_tools:till: own_tools lies in .*: write the team file there"):
        Team("shop", [beside.till]).to_file(tmp_path / "other" / "team.yaml")


def test_a_file_that_is_there_is_not_overwritten(beside: Any, tmp_path: Path):
    (tmp_path / "team.yaml").write_text("mine")
    with pytest.raises(Invalid, match=r"team\.yaml: is there already; name another file, or say replace=True"):
        Team("shop", [beside.till]).to_file(tmp_path / "team.yaml")

    assert (tmp_path / "team.yaml").read_text() == "mine"


def closure() -> Callable[..., Any]:
    @role
    async def inner(task: Task, ctx: Context) -> str:
        return f"{task.tag} {ctx.notes}"

    return inner


def test_what_no_worker_could_import_is_named_when_a_file_is_written(tmp_path: Path):
    def of_the_program(article: str) -> str:
        return article

    of_the_program.__module__ = "__main__"
    of_the_program.__qualname__ = "of_the_program"
    team = Team("shop", [closure(), Role("clerk", tools=[of_the_program])])

    with pytest.raises(Invalid) as refused:
        team.to_file(tmp_path / "team.yaml")

    assert "inner is defined inside closure(); of_the_program is defined in the program itself" in str(refused.value)
    assert "move them to a module beside it, such as tools.py" in str(refused.value)
    assert not (tmp_path / "team.yaml").exists()


NAMELESS: list[Callable[[str], str]] = [lambda article: article]
CLERK: Any = "clerk"


def keyless() -> Callable[[str], str]:
    def of_one(article: str) -> str:
        return article

    return of_one


KEYLESS: Any = {"use": keyless(), "effect": "keyed"}
APART: Any = {"use": keyless(), "isolated": True}


def one_argument(task: Task) -> str:
    return task.tag


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tool(NAMELESS[0]), "<lambda> has no name for a model to call"),
        (lambda: Team("s", [Role("r", tools=NAMELESS)]), "<lambda> has no name for a model to call"),
        (lambda: role(one_argument), "@role one_argument: takes (task: "),
        (lambda: Team("s", [Role("r", tools=[KEYLESS])]), "of_one has no parameter 'key'; a tool with effect: keyed"),
        (lambda: Team("s", [Role("r", tools=[APART])]), "of_one is defined inside keyless(), and a process of its own"),
        (lambda: Team("s", [one_argument]), "roles: one_argument is no role: write @role above it"),
        (lambda: Team("s", [CLERK]), "roles: 'clerk' is no role; a role is a function with @role, or Role("),
        (lambda: role(CLERK), "role: a role that uses a model is Role('clerk', …)"),
    ],
)
def test_what_is_no_tool_and_no_role_is_said_at_once(make: Callable[[], Any], reason: str):
    with pytest.raises(Invalid) as refused:
        make()

    assert reason in str(refused.value)


def test_all_mistakes_of_a_team_are_said_together():
    keys: dict[str, Any] = {"slots": 0, "tols": ["calculate"]}
    with pytest.raises(TeamMistakes) as refused:
        Team("the shop", [Role("a"), Role("a", **keys)], limits={"depth": -1})

    assert len(refused.value.mistakes) == 5
    assert str(refused.value).startswith("5 mistakes in Team('the shop'):")


def test_offline_no_model_is_asked(tmp_path: Path):
    team = Team("t", [Role("a", model="claude-sonnet-5-5", other_model="claude-opus-5")], supervisor={"model": "auto"})

    offline = team.offline().spec
    (only,) = offline.roles

    assert offline.supervisor.model == "offline"
    assert isinstance(only, ModelRole)
    assert (only.model, only.other_model) == ("offline", None)
    assert team.spec.supervisor.model == "auto"
    team.offline().to_file(tmp_path / "team.yaml")
    assert load_team(tmp_path / "team.yaml").supervisor.model == "offline"


def test_every_key_of_a_team_file_can_be_said_in_python():
    assert set(get_type_hints(TeamKeys)) == TeamSpec.model_fields.keys() - {"team", "roles", "folder"}
    assert set(get_type_hints(ModelKeys)) == ModelRole.model_fields.keys() - {"name", "fallbacks"}
    assert set(get_type_hints(FunctionKeys)) == FunctionRole.model_fields.keys() - {"run"}
