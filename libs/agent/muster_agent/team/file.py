"""Reads a team file and checks all of it; its mistakes are one error that names each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muster_agent.team.checking.mistakes import Mistake, Place, TeamMistakes, placed
from muster_agent.team.checking.rules import RULES, Rule
from muster_agent.team.checking.words import keys_of, mistakes_of
from muster_agent.team.schema import Team
from muster_agent.team.source import read_source
from muster_protocol.fields import nearest


def load_team(path: Path | str, *rules: Rule) -> Team:
    """The team of a file; `rules` are what must hold beside what holds for every reader, such as `role_code()`."""
    file = Path(path)
    try:
        source = read_source(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TeamMistakes(str(file), [Mistake((), f"cannot read the team file: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        raise TeamMistakes(str(file), [Mistake((), f"not a text file in UTF-8: {error.reason}")]) from None
    if source.mistakes and not source.raw:
        raise TeamMistakes(str(file), source.mistakes)
    found = check(source.raw, file.resolve().parent, rules)
    return _team(found, str(file), source.raw, source.lines, source.mistakes)


def team_of(raw: Mapping[Any, Any], folder: Path, named: str = "team file") -> Team:
    """The team that a mapping describes; relative paths start at the folder. `named` stands in its mistakes."""
    return _team(check(raw, folder, ()), named, raw, {}, [])


def check(raw: Mapping[Any, Any], folder: Path, rules: tuple[Rule, ...]) -> Team | list[Mistake]:
    """The team, or everything that is wrong with it."""
    mistakes = [mistake for rule in (*RULES, *rules) for mistake in rule(raw, folder)]
    if "folder" in raw:
        mistakes.append(Mistake(("folder",), f"unknown key 'folder'{nearest('folder', keys_of(Team))}"))
    try:
        team = Team.model_validate({**raw, "folder": folder})
    except ValidationError as error:
        return [*mistakes_of(error.errors(include_url=False)), *mistakes]
    if mistakes:
        return mistakes
    return _placed(team, folder)


def _placed(team: Team, folder: Path) -> Team:
    """The team with whole paths."""
    given = {key: getattr(team, key) for key in ("corpus", "tables")}
    placed: dict[str, Any] = {key: (folder / path).resolve() for key, path in given.items() if path is not None}
    placed["databases"] = {name: (folder / path).resolve() for name, path in team.databases.items()}
    if team.files is not None:
        placed["files"] = team.files.model_copy(update={"root": (folder / team.files.root).resolve()})
    placed["providers"] = {name: provider.within(folder) for name, provider in team.providers.items()}
    return team.model_copy(update={key: value for key, value in placed.items() if key in team.model_fields_set})


def _team(
    found: Team | list[Mistake], file: str, raw: Mapping[Any, Any], lines: Mapping[Place, int], known: list[Mistake]
) -> Team:
    """The team if there are no mistakes; otherwise all of them, in the order of the file."""
    mistakes = [placed(mistake, raw, lines) for mistake in [*known, *(found if isinstance(found, list) else [])]]
    if mistakes or isinstance(found, list):
        raise TeamMistakes(file, sorted(mistakes, key=lambda mistake: mistake.line or 0))
    return found
