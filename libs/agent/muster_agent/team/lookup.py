"""Which team file is meant when none is named."""

from importlib.util import find_spec
from pathlib import Path

from muster_protocol.errors import Invalid

SAMPLE = Path("examples", "cloud", "team.yaml")
SAMPLE_PACKAGE = "muster_cli"  # its wheel holds the sample; it is looked for, never imported


def find_team_file(given: str | None, named: str | None, folder: Path) -> Path:
    """The one given with --team-file, else that of MUSTER_TEAM_FILE, else team.yaml in the folder, else the sample."""
    for name, source in ((given, "--team-file"), (named, "MUSTER_TEAM_FILE")):
        if not name:
            continue
        if not (folder / name).is_file():
            raise Invalid(f"there is no team file {name}", source)
        return folder / name
    if (folder / "team.yaml").is_file():
        return folder / "team.yaml"
    return sample_team_file()


def sample_team_file(package: str = SAMPLE_PACKAGE) -> Path:
    """The sample inside the installed wheel of the command, or at the root of the source tree."""
    spec = find_spec(package)
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        for root in (Path(location), *Path(location).parents[:2]):
            if (root / SAMPLE).is_file():
                return root / SAMPLE
    raise Invalid("the sample team is not installed here; name a team file", "--team-file")
