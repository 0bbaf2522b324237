"""What a team file says of the files that its roles may use."""

from pathlib import Path

from muster_agent.team.strict import Strict


class FilesSpec(Strict):
    """The folder of `list_files` and `read_file`, and whether `write_file` may be used there."""

    root: Path
    write: bool = False
