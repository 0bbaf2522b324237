"""A script of replies: texts, JSON values, calls of tools and faults, in their order or where a prompt has a text."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

import yaml
from pydantic import Field, ValidationError, model_validator

from muster_agent.team.strict import Strict
from muster_protocol.errors import Misconfigured

Fault = Literal["429", "529", "500", "hang", "cut", "broken", "truncate", "refuse"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
_FORM = "a list of texts, or of mappings with text, json, or tool and arguments, and when or fault"


class Entry(Strict):
    """One reply of a script. With `when` it is the reply to every prompt that has this text."""

    when: str = ""
    text: str = ""
    json_value: Any = Field(default=None, alias="json")
    tool: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    fault: Fault | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not (self.text or self.tool or self.fault or "json_value" in self.model_fields_set):
            raise ValueError("has none of text, json, tool and fault")
        return self


class Script:
    """Gives the reply to each prompt; after the last reply comes the first again."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._matching = [entry for entry in entries if entry.when]
        in_order = [entry for entry in entries if not entry.when]
        self._in_order = cycle(in_order) if in_order else None

    def next(self, prompt: str) -> Entry | None:
        """None: the script has nothing for this prompt."""
        found = next((entry for entry in self._matching if entry.when in prompt), None)
        return found or (None if self._in_order is None else next(self._in_order))


def read_script(path: Path, where: str) -> Script:
    """The script in a YAML or JSON file; `where` names what named the file."""
    try:
        raw: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or "it is not YAML"
        raise Misconfigured(f"{where}: cannot read {path}: {why}") from None
    if not isinstance(raw, list) or not raw:
        raise Misconfigured(f"{where}: {path} needs {_FORM}")
    return script_of(cast("list[object]", raw), f"{where}: {path}")


def script_of(raw: Sequence[object], where: str) -> Script:
    """The script that a list of texts and mappings is."""
    entries: list[Entry] = []
    for number, one in enumerate(raw):
        try:
            entries.append(Entry.model_validate({"text": one} if isinstance(one, str) else one))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            said = str(first["msg"]).removeprefix("Value error, ")
            place = ".".join(str(part) for part in (number, *first["loc"]))
            raise Misconfigured(f"{where}: {place}: {said}; needs {_FORM}") from None
    return Script(entries)
