"""Which team file is meant when none is named."""

from pathlib import Path

import pytest

import muster_cli
from muster_cli.local.team_file import find_team_file, sample_team_file
from muster_protocol.errors import Invalid


def test_what_is_named_wins_then_the_environment_then_the_folder_then_the_sample(tmp_path: Path):
    for name in ("a.yaml", "b.yaml", "team.yaml"):
        (tmp_path / name).touch()

    assert find_team_file("a.yaml", {"MUSTER_TEAM": "b.yaml"}, tmp_path) == tmp_path / "a.yaml"
    assert find_team_file(None, {"MUSTER_TEAM": "b.yaml"}, tmp_path) == tmp_path / "b.yaml"
    assert find_team_file(None, {}, tmp_path) == tmp_path / "team.yaml"
    (tmp_path / "team.yaml").unlink()
    assert find_team_file(None, {}, tmp_path).parts[-3:] == ("examples", "cloud", "team.yaml")


@pytest.mark.parametrize(
    ("given", "env", "source"), [("x.yaml", {}, "--team"), (None, {"MUSTER_TEAM": "x"}, "MUSTER_TEAM")]
)
def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path, given: str | None, env: dict[str, str], source: str):
    with pytest.raises(Invalid, match=f"{source}: there is no team file x"):
        find_team_file(given, env, tmp_path)


def test_the_sample_is_found_in_the_source_tree_and_in_an_installed_package(tmp_path: Path):
    assert muster_cli.__file__ is not None
    assert sample_team_file(Path(muster_cli.__file__).parent).is_file()

    installed = tmp_path / "site-packages" / "muster_cli"
    (installed / "examples" / "cloud").mkdir(parents=True)
    (installed / "examples" / "cloud" / "team.yaml").touch()
    assert sample_team_file(installed) == installed / "examples" / "cloud" / "team.yaml"


def test_without_a_sample_the_way_out_is_named(tmp_path: Path):
    with pytest.raises(Invalid, match="--team: the sample team is not installed here"):
        sample_team_file(tmp_path / "a" / "b" / "muster_cli")
