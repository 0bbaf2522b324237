"""What a request lists: subjects, as in "A, B and C" or "A vs B", and entries, each on a line of its own."""

import re
from collections.abc import Sequence
from typing import NamedTuple

MIN_ENTRIES = 2  # one line alone is no list
_SEPARATOR = re.compile(r"\s*,\s*(?:and|or)\s+|\s*,\s*|\s+(?:and|or|vs\.?|versus|against|&)\s+", re.IGNORECASE)
_COMPARES = re.compile(r"\b(compar|contrast|versus|vs\b|between|differ|each of|rank)", re.IGNORECASE)
_PROPER = re.compile(r"[A-Z0-9][\w.+#-]*")
_LEAD = (
    "a about an analyse analyze are assess benchmark between choose compare contrast create describe discuss do "
    "draft each evaluate examine explain find for from give how i in investigate is list make of on outline pick "
    "please prepare produce rank report research review study summarise summarize tell that the their three to "
    "two we weigh what which with write"
)
LEAD_WORDS = frozenset(_LEAD.split())
_END = (
    "about as at based because by for from i if in into its it my on our regarding so that the their then there "
    "they to using we when where which while who with you your"
)
END_WORDS = frozenset(_END.split())
_ENTRY = re.compile(r"^\s*(?:[-*•]|\d{1,5}[.)])\s+(?P<entry>\S.*)$")


class Listed(NamedTuple):
    """Entries that each stand on a line of their own, and what the text says around them."""

    about: str
    entries: tuple[str, ...]


def listed(text: str) -> Listed | None:
    """The list of a request, or nothing."""
    lines = text.splitlines()
    found = [(line, _ENTRY.match(line)) for line in lines]
    entries = tuple(" ".join(match["entry"].split()) for _, match in found if match)
    if len(entries) < MIN_ENTRIES:
        return None
    about = " ".join(" ".join(line for line, match in found if not match).split())
    return Listed(about.rstrip(":").strip(), entries)


def subjects(text: str) -> list[str]:
    """The subjects that a request lists, as in "A, B and C" or "A vs B"; two or more, or none."""
    compares = _COMPARES.search(text) is not None
    for clause in re.split(r"[:;?!\n]|(?<!\bvs)\.\s", text):
        parts = [part.strip(" \"'()") for part in _SEPARATOR.split(clause) if part.strip(" \"'()")]
        named = _leading([_proper(part, is_first=index == 0) for index, part in enumerate(parts)])
        if len(named) < 2 and compares:
            named = _leading([_plain(part, is_first=index == 0) for index, part in enumerate(parts)])
        if len(named) >= 2:
            return named
    return []


def _leading(names: Sequence[str]) -> list[str]:
    """The names up to the first part without one; the first part may have none, as an introduction."""
    run: list[str] = []
    for index, name in enumerate(names):
        if not name and index > 0:
            break
        run.append(name)
    return list(dict.fromkeys(name for name in run if name))


def _proper(part: str, is_first: bool) -> str:
    """The proper name at the end of the first part, at the start of any other."""
    words = part.split()
    if is_first:
        kept: list[str] = []
        for word in reversed(words):
            if not _PROPER.fullmatch(word) or word.lower() in LEAD_WORDS:
                break
            kept.insert(0, word)
        return " ".join(kept)
    names: list[str] = []
    for word in words:
        if not _PROPER.fullmatch(word.rstrip(".")):
            break
        names.append(word.rstrip("."))
    return " ".join(names)


def _plain(part: str, is_first: bool) -> str:
    words = part.rstrip(".").split()
    if is_first:
        starts = [index for index, word in enumerate(words) if word.lower() in LEAD_WORDS]
        words = words[starts[-1] + 1 :] if starts else words
    kept: list[str] = []
    for word in words[:5]:
        if word.lower() in END_WORDS | LEAD_WORDS:
            break
        kept.append(word)
    return " ".join(kept) if len(kept) <= 4 else ""
