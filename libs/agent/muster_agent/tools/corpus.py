"""Searches the text files under one folder; it opens no file outside of it."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".md", ".txt")
MAX_FILES = 2000
MAX_FILE_BYTES = 1_000_000
MAX_PASSAGE = 1200
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
_COMMON_WORDS = (
    "a an and are as at be by for from has have in is it its of on or that the their this to was what which with "
    "compare research analyse analyze find about report write"
)
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, its file and the headings above it."""

    file: str
    heading: str
    text: str

    def __str__(self) -> str:
        heading = f" {self.heading}:" if self.heading else ""
        return f"[{self.file}]{heading} {self.text[:MAX_PASSAGE]}"


def read_corpus(root: Path) -> tuple[Passage, ...]:
    """All passages under the root, file by file."""
    passages: list[Passage] = []
    for name, path in files_in(root):
        passages += passages_of(name, path.read_text(encoding="utf-8", errors="replace"))
    return tuple(passages)


def files_in(root: Path) -> Iterator[tuple[str, Path]]:
    """The files that can be searched, each with its name."""
    home = root.resolve()
    for path in sorted(home.rglob("*"))[:MAX_FILES]:
        is_text = path.suffix.lower() in SUFFIXES and path.is_file()
        if is_text and path.resolve().is_relative_to(home) and path.stat().st_size <= MAX_FILE_BYTES:
            yield path.relative_to(home).as_posix(), path


def passages_of(file: str, text: str) -> list[Passage]:
    """The paragraphs of a text, each with its headings as `title > section`; a heading alone is not a passage."""
    found: list[Passage] = []
    headings: dict[int, str] = {}
    for paragraph in re.split(r"\n\s*\n", text):
        lines: list[str] = []
        for line in paragraph.splitlines():
            if heading := re.match(r"(#{1,6})\s+(.+)", line):
                level = len(heading[1])
                headings = {depth: words for depth, words in headings.items() if depth < level}
                headings[level] = heading[2].strip()
            elif line.strip():
                lines.append(line.strip())
        if lines:
            found.append(Passage(file, " > ".join(headings.values()), "\n".join(lines)))
    return found


def search(passages: tuple[Passage, ...], query: str, limit: int) -> list[Passage]:
    """The passages with most of the query's rare words, best first; a word in a heading counts double."""
    wanted = set(_words(query))
    bags = [(Counter(_words(passage.text)), set(_words(passage.heading))) for passage in passages]
    seen_in = Counter(word for bag, heading in bags for word in wanted if word in bag or word in heading)
    scored: list[tuple[float, int]] = []
    for index, (bag, heading) in enumerate(bags):
        score = sum(
            math.log(1 + len(bags) / seen_in[word]) * ((word in bag) + 2 * (word in heading))
            for word in wanted
            if seen_in[word]
        )
        if score > 0:
            scored.append((-score, index))
    return [passages[index] for _, index in sorted(scored)[:limit]]


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in _COMMON]
