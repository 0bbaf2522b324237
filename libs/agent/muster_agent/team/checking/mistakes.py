"""The mistakes of a team file: where each stands, what is wrong, and all of them as one error."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from muster_bus.process.printable import printable
from muster_protocol.errors import Invalid

Place = tuple[str | int, ...]  # the way to a value: ("roles", 0, "tools")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong. `line` is None where nothing of its way stands in a file."""

    place: Place
    reason: str
    role: str = ""
    line: int | None = None

    @property
    def path(self) -> str:
        return ".".join(str(part) for part in self.place)

    def shown(self, file: str) -> str:
        """Where it is, as `team.yaml:12: roles.2.model (writer)`."""
        where = [file if self.line is None else f"{file}:{self.line}"]
        if self.place:
            where.append(f"{self.path} ({self.role})" if self.role else self.path)
        return ": ".join(where)


class TeamMistakes(Invalid):
    """A team file with mistakes; the text has one line for each."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes[0].reason, mistakes[0].shown(file))
        self.mistakes = tuple(mistakes)
        self.lines = tuple(printable(f"{mistake.shown(file)}: {mistake.reason}") for mistake in mistakes)
        self._title = f"{len(mistakes)} mistakes in {file}:"

    def __str__(self) -> str:
        return self.lines[0] if len(self.lines) == 1 else "\n".join((self._title, *self.lines))


def placed(mistake: Mistake, raw: Mapping[Any, Any], lines: Mapping[Place, int]) -> Mistake:
    """The mistake with its line, or that of the nearest value around it, and with the name of its role."""
    ways = (mistake.place[:length] for length in range(len(mistake.place), 0, -1))
    line = next((lines[way] for way in ways if way in lines), None)
    return replace(mistake, line=mistake.line or line, role=_role_at(mistake.place, raw))


def roles_in(raw: Mapping[Any, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """The roles that are mappings, with their numbers, also of a file with mistakes."""
    roles: object = raw.get("roles")
    if not isinstance(roles, list | tuple):
        return []
    numbered = enumerate(cast("Sequence[object]", roles))
    return [(number, cast("Mapping[str, Any]", role)) for number, role in numbered if isinstance(role, dict)]


def texts_in(raw: object) -> list[tuple[int, str]]:
    """The texts of a list, with their numbers; none if it is no list."""
    found = enumerate(cast("Sequence[object]", raw)) if isinstance(raw, list | tuple) else ()
    return [(number, text) for number, text in found if isinstance(text, str)]


def tools_in(raw: object) -> list[tuple[int, str]]:
    """The names in a list of tools, with their numbers: a tool is a text, or a mapping with `use`."""
    found = cast("Sequence[object]", raw) if isinstance(raw, list | tuple) else ()
    names = [cast("Mapping[str, object]", each).get("use") if isinstance(each, dict) else each for each in found]
    return texts_in(names)


def _role_at(place: Place, raw: Mapping[Any, Any]) -> str:
    if len(place) < 2 or place[0] != "roles":
        return ""
    name: object = dict(roles_in(raw)).get(cast("int", place[1]), {}).get("name")
    return name if isinstance(name, str) else ""
