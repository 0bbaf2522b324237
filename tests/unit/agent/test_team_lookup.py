"""Which team file is meant when none is named."""

import sys
from pathlib import Path

import pytest

from muster_agent.team.lookup import find_team_file, sample_team_file
from muster_protocol.errors import Invalid


def test_the_given_file_wins_then_the_named_one_then_the_folder_then_the_sample(tmp_path: Path):
    for name in ("a.yaml", "b.yaml", "team.yaml"):
        (tmp_path / name).touch()

    assert find_team_file("a.yaml", "b.yaml", tmp_path) == tmp_path / "a.yaml"
    assert find_team_file(None, "b.yaml", tmp_path) == tmp_path / "b.yaml"
    assert find_team_file(None, None, tmp_path) == tmp_path / "team.yaml"
    (tmp_path / "team.yaml").unlink()
    assert find_team_file(None, None, tmp_path).parts[-3:] == ("examples", "cloud", "team.yaml")


@pytest.mark.parametrize(
    ("given", "named", "source"), [("x.yaml", None, "--team-file"), (None, "x", "MUSTER_TEAM_FILE")]
)
def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path, given: str | None, named: str | None, source: str):
    with pytest.raises(Invalid, match=f"{source}: there is no team file x"):
        find_team_file(given, named, tmp_path)


def test_the_sample_is_found_in_an_installed_package_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    package = tmp_path / "installed_command"
    (package / "examples" / "cloud").mkdir(parents=True)
    (package / "examples" / "cloud" / "team.yaml").touch()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)

    assert sample_team_file("installed_command") == package / "examples" / "cloud" / "team.yaml"
    assert "installed_command" not in sys.modules


@pytest.mark.parametrize("package", ["not_installed_anywhere", "json"])
def test_without_a_sample_the_error_says_what_to_do(package: str):
    with pytest.raises(Invalid, match="--team-file: the sample team is not installed here; name a team file"):
        sample_team_file(package)
