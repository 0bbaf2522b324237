"""Which team file is meant when none is named."""

import os
from collections.abc import Mapping
from pathlib import Path

from muster_protocol.errors import Invalid

SAMPLE = Path("examples", "cloud", "team.yaml")


def find_team_file(given: str | None, env: Mapping[str, str], here: Path, package: Path | None = None) -> Path:
    """The one given, else MUSTER_TEAM, else ./team.yaml, else the sample that is shipped."""
    for name, source in ((given, "--team"), (env.get("MUSTER_TEAM"), "MUSTER_TEAM")):
        if not name:
            continue
        if not (here / name).is_file():
            raise Invalid(f"there is no team file {name}", source)
        return here / name
    if (here / "team.yaml").is_file():
        return here / "team.yaml"
    return sample_team_file(package or Path(__file__).parent)


def sample_team_file(package: Path) -> Path:
    """Inside an installed wheel, or at the root of the source tree."""
    for root in (package, *package.parents[:3]):
        if (root / SAMPLE).is_file():
            return root / SAMPLE
    raise Invalid("the sample team is not installed here; name a team file", "--team")


def team_file(given: str | None) -> Path:
    return find_team_file(given, os.environ, Path.cwd())
