"""`muster check`: say everything that is wrong in a team file, without starting anything."""

import contextlib
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_agent.team.mistakes import Mistake, TeamMistakes
from muster_agent.team.role_code import role_code
from muster_bus.process.command import Exit
from muster_cli.view.console import say, say_json

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


def check(given: Namespace, settings: "Settings") -> int:
    file = Path(given.file) if given.file else find_team_file(None, settings.team_file, Path.cwd())
    try:
        with contextlib.redirect_stdout(sys.stderr):  # code that is imported may print
            team = load_team(file, role_code())
    except TeamMistakes as error:
        if not given.json:
            raise
        say_json({"file": str(file), "mistakes": [_document(mistake) for mistake in error.mistakes]})
        return Exit.USAGE
    roles = [role.name for role in team.roles]
    document = {"file": str(file), "mistakes": [], "team": team.team, "roles": roles, "tags": team.tags}
    if given.json:
        say_json(document)
    else:
        say(f"{file} is fine: team {team.team}, roles {', '.join(roles)}")
    return Exit.DONE


def _document(mistake: Mistake) -> dict[str, object]:
    return {
        "line": mistake.line,
        "path": mistake.path,
        "role": mistake.role or None,
        "reason": mistake.reason,
    }
