"""Fills the blanks of a prompt: a file of `texts/` with the parts `# System` and `# User`, where `$name` is a blank.

A line or a paragraph that has blanks, all of which stay empty, is left out. What is filled in is not looked at again,
whatever stands in it.
"""

import re
from functools import cache
from pathlib import Path
from string import Template
from typing import NamedTuple

TEXTS = Path(__file__).parent / "texts"
_PART = re.compile(r"^# (System|User)$\n?", re.MULTILINE)


class Prompt(NamedTuple):
    """What a model is told: who it is and by which rules it works, and what to do now."""

    system: str
    user: str


def prompt_of(name: str, **blanks: str) -> Prompt:
    """The prompt of this name with its blanks filled in."""
    _, _, system, _, user = _PART.split(_read(name))
    return Prompt(_filled(system, blanks), _filled(user, blanks))


def text_of(name: str, **blanks: str) -> str:
    """A text that is a part of prompts, with its blanks filled in."""
    return _filled(_read(name), blanks)


@cache
def _read(name: str) -> str:
    return (TEXTS / f"{name}.md").read_text(encoding="utf-8")


def _filled(text: str, blanks: dict[str, str]) -> str:
    paragraphs: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        if _is_said(paragraph, blanks):
            lines = [line for line in paragraph.splitlines() if _is_said(line, blanks)]
            paragraphs.append(Template("\n".join(lines)).substitute(blanks))
    return "\n\n".join(paragraphs)


def _is_said(text: str, blanks: dict[str, str]) -> bool:
    names = Template(text).get_identifiers()
    return not names or any(blanks[name] for name in names)
