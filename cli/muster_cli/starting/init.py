"""`muster init`: a folder with a team to start from. No file that is there is changed."""

import re
import shlex
from argparse import Namespace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from muster_bus.process.command import Exit
from muster_cli.local.folder import command
from muster_cli.view.console import say
from muster_protocol.errors import Invalid, Misconfigured
from muster_protocol.messages.wrong import NAME
from muster_protocol.subjects import is_id

if TYPE_CHECKING:
    from muster_bus.process.settings import Settings

TEXTS = Path(__file__).parent / "texts"
FILES = {  # in the folder that is made, and here
    "team.yaml": "team.yaml.txt",
    "tools.py": "tools.py.txt",
    "roles.py": "roles.py.txt",
    "test_team.py": "test_team.py.txt",
}
KEPT = {".gitignore": "gitignore.txt", "Dockerfile": "Dockerfile.txt"}  # where a project has its own already
QUESTION = "Which apples and pears are in the shop?"


def init(given: Namespace, _settings: "Settings") -> int:
    folder = Path(given.folder)
    name = _name(given.name, folder)
    if there := [file for file in FILES if (folder / file).exists()]:
        raise Invalid(f"there is a {there[0]} already, and nothing is overwritten; name another folder", str(folder))
    made = _write(folder, name)
    kept = [file for file in KEPT if file not in made]
    say(f"made in {folder}: {', '.join(made)}" + (f"; kept your {' and '.join(kept)}" if kept else ""))
    for line in _next_steps(folder):
        say(line)
    return Exit.DONE


def _write(folder: Path, name: str) -> list[str]:
    """The names of the files that were made."""
    made: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in (FILES | KEPT).items():
            if file in KEPT and (folder / file).exists():
                continue
            filled = Template((TEXTS / text).read_text(encoding="utf-8")).safe_substitute(name=name)
            with (folder / file).open("x", encoding="utf-8") as written:
                written.write(filled)
            made.append(file)
    except OSError as error:
        raise Misconfigured(f"cannot write {error.filename}: {error.strerror}") from None
    return made


def _next_steps(folder: Path) -> list[str]:
    muster = command(folder.resolve())
    enter = [f"  cd {shlex.quote(str(folder))}"] if folder.resolve() != Path.cwd() else []
    return [
        "Next:",
        *enter,
        f"  {muster} role try clerk {shlex.quote('How many apples are there?')}",
        f"  {muster} up",
        f"  {muster} ask {shlex.quote(QUESTION)}     # in another terminal, in this folder",
    ]


def _name(given: str | None, folder: Path) -> str:
    """The team's name: the one that is given, or what is left of the folder's when it may stand in a subject."""
    if given is not None:
        if not is_id(given):
            raise Invalid(f"{given!r} cannot be a team's name: {NAME}", "--name")
        return given
    found = re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-")
    return found[:64] or "team"
