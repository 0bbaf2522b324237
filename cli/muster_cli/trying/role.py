"""`muster role try`: one role does one task, without a broker, and everything that happens is shown."""

import contextlib
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster_agent.team.checking.role_code import role_code
from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_bus.process.command import Exit
from muster_cli.trying.arguments import json_object
from muster_cli.trying.document import document_of
from muster_cli.trying.shown import beginning, lines_of
from muster_cli.view.console import read_standard_input, say, say_json
from muster_protocol.messages import ResultStatus
from muster_worker.trying.trial import Trying, try_role

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings


async def role(given: Namespace, settings: "Settings") -> int:
    file = find_team_file(given.team_file, settings.team_file, Path.cwd())
    inputs, outputs = json_object(given.inputs, "--inputs"), json_object(given.outputs, "--outputs")
    text = read_standard_input() if given.text == "-" else given.text
    with contextlib.redirect_stdout(sys.stderr):  # code that is imported, or runs, may print
        trying = _load(file, given.name, settings)
        if not given.json:
            say(beginning(trying), is_error=True)
        asked: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "model": given.model}
        trial = await try_role(trying, text, **asked, on_progress=_progress)
    if given.json:
        say_json(document_of(trial))
    else:
        for line in lines_of(trial):
            say(line)
    return Exit.DONE if trial.outcome.status is ResultStatus.DONE else Exit.FAILED


def _load(file: Path, name: str, settings: "Settings") -> Trying:
    """The role, after what is wrong with the file; the code of other roles is left alone."""
    load_team(file).role(name)  # its name first: nobody wants to hear about code of a role that is not there
    return Trying(load_team(file, role_code({name})), name, {**settings.keys, **settings.model_env})


def _progress(text: str) -> None:
    say(f"… {text}", is_error=True)
