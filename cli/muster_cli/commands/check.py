"""`muster check`: say everything that is wrong in a team file, and what is seldom meant, without starting anything."""

import contextlib
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from muster_agent.team.checking.mistakes import Mistake, TeamMistakes
from muster_agent.team.checking.role_code import role_code
from muster_agent.team.checking.warnings import warnings_in
from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_bus.process.command import Exit
from muster_cli.view.console import say, say_json

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


def check(given: Namespace, settings: "Settings") -> int:
    file = Path(given.file) if given.file else find_team_file(None, settings.team_file, Path.cwd())
    warnings = warnings_in(file)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # code that is imported may print
            team = load_team(file, role_code())
    except TeamMistakes as error:
        if not given.json:
            _warn(file, warnings)
            raise
        say_json({"file": str(file), "mistakes": _documents(error.mistakes), "warnings": _documents(warnings)})
        return Exit.USAGE
    roles = [role.name for role in team.roles]
    if given.json:
        document = {"file": str(file), "mistakes": [], "warnings": _documents(warnings)}
        say_json({**document, "team": team.team, "roles": roles, "tags": team.tags})
    else:
        _warn(file, warnings)
        say(f"{file} is fine: team {team.team}, roles {', '.join(roles)}")
    return Exit.DONE


def _warn(file: Path, warnings: Sequence[Mistake]) -> None:
    for warning in warnings:
        say(f"warning: {warning.shown(str(file))}: {warning.reason}", is_error=True)


def _documents(mistakes: Sequence[Mistake]) -> list[dict[str, object]]:
    return [{"line": one.line, "path": one.path, "role": one.role or None, "reason": one.reason} for one in mistakes]
