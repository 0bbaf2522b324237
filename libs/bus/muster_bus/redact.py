"""The one redactor: known secret values are replaced by their names wherever text leaves the process.

A secret belongs to the process, not to one of its connections, and an edge that has to be handed the redactor can be
forgotten: so there is one, `KNOWN`, which learns at the start what the process has read (decision 21).
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import unquote

MIN_SECRET = 8  # characters; a shorter value, such as `test`, would be replaced all over the text
_USER_INFO = re.compile(r"(?<=://)[^/?#@\s\"'<>]+@")  # the lookbehind keeps the scheme

Secret = tuple[str, str]  # the name that it is known by, and its value


class Redactor:
    """Replaces the secrets that it knows by `[redacted NAME]`; knowing none it costs nothing."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._needles: tuple[bytes, ...] = ()
        self.add(secrets)

    def add(self, secrets: Iterable[Secret]) -> None:
        """Know these from now on, in every form in which they may be written."""
        for name, value in secrets:
            for form in _forms(value):
                if len(form) >= MIN_SECRET:
                    self._names.setdefault(form, name)
        longest_first = sorted(self._names, key=len, reverse=True)  # one secret may begin with another
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._needles = tuple(form.encode(errors="backslashreplace") for form in longest_first)

    def __call__(self, text: str) -> str:
        """The text without secrets. Redact first, then cut: a secret at the edge must not be left in part."""
        if self._pattern is None or not any(form in text for form in self._names):
            return text  # looking for each is ten times as fast as the pattern
        return self._pattern.sub(lambda found: f"[redacted {self._names[found[0]]}]", text)

    def is_in(self, body: bytes) -> bool:
        """Whether a body may hold a secret."""
        return bool(self._needles) and any(needle in body for needle in self._needles)

    def body(self, body: bytes, free_text: Sequence[str]) -> bytes:
        """A JSON body without secrets in its free text: ids and names stay, whatever somebody chose as a password."""
        fields = json.loads(body)
        for path in free_text:
            fields = self._at(fields, path.split("."))
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()

    def _at(self, value: Any, path: list[str]) -> Any:
        if isinstance(value, list):
            return [self._at(element, path) for element in cast("list[Any]", value)]
        if not path:
            return self._all(value)
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        return {**fields, path[0]: self._at(fields[path[0]], path[1:])} if path[0] in fields else cast("Any", value)

    def _all(self, value: Any) -> Any:
        """Every text in a value, however deep; a name of a field may be one too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._all(element) for element in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self(name): self._all(element) for name, element in cast("dict[str, Any]", value).items()}
        return value


KNOWN = Redactor()  # what this process has read; `process_settings` adds to it


def without_user_info(text: str) -> str:
    """Addresses in a text without user, password or token: `nats://host:4222`."""
    return _USER_INFO.sub("", text) if "://" in text else text


def _forms(value: str) -> set[str]:
    """A secret as it is, as an address has it, and as it stands in JSON, or in JSON within JSON."""
    plain = {value, unquote(value)}
    once = {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in plain for is_ascii in (False, True)}
    return plain | once | {json.dumps(form, ensure_ascii=False)[1:-1] for form in once}
