"""What an output says in figures: each with the words that say what it is about, and the words around it. Pure.

A claim is about what its clause names. Where a clause names nothing, the line's first clause, the heading above it or
the task itself tells what is spoken of.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from muster_protocol.messages import Output
from muster_supervisor.checking.figures import DATE, YEAR, Figure, figures
from muster_supervisor.checking.words import answers, direction, root, roots, tokens_of

MAX_CHARACTERS = 40_000  # of one output that are looked at
MAX_CLAIMS = 400  # of one output
MAX_QUOTE = 200  # characters
MAX_IN_SENTENCE = 40
MAX_DEPTH = 12  # of a JSON value
MAX_NAME = 60  # characters of a text in JSON that may be a name
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"“(]?[A-ZÀ-Þ0-9])")
_CLAUSE = re.compile(r";\s*|,\s+|\s+(?:and|while|whereas|but|although)\s+")
_PERIOD = re.compile(r"\b(?:Q[1-4]|H[12]|FY ?\d{2,4})\b|\b(?:19|20)\d\d\b")
_LABEL = re.compile(
    r"\b(?:step|section|task|chapter|table|figure|page|part|version|item|no|phase|appendix|line|row|note)\.?\s*$", re.I
)
_LIST_MARK = re.compile(r"^\s*(?:[-*•]\s+)?(?:\d{1,3}[.)]\s+)?")
_MONTH = re.compile(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday"
    r"|Wednesday|Thursday|Friday|Saturday|Sunday)\b"
)
_EVENT_WORDS = """
found founded born open opened launch launched release released establish started began complete completed die died
publish published introduce introduced build built end ended acquire acquired create created sign signed won pass
passed invent invented discover discovered join joined retire retired elect elected close closed enter entered plan
planned due arrive arrived adopt adopted translated independence
"""
_EVENTS = roots(_EVENT_WORDS.split())
_NAME_BEFORE = re.compile(r"\b([A-Z][\w-]*) $")
_GENERIC_KEYS = frozenset({"id", "index", "number", "attempt", "seconds", "version", "rank", "position", "timestamp"})
_OPENERS = frozenset({"according", "despite", "however", "thus", "therefore", "overall", "here", "note", "only"})


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure and what it is about."""

    task_id: str
    quote: str
    figure: Figure
    words: frozenset[str]
    names: frozenset[str]  # of these words, those that are names, or may be
    counted: frozenset[str]  # what a bare number counts
    periods: frozenset[str]
    answers: frozenset[tuple[int, int]]
    direction: int = 0
    is_field: bool = False  # of a JSON value


@dataclass(frozen=True, slots=True)
class About:
    """What a line of an output is about, as far as the line itself does not say it."""

    names: frozenset[str] = frozenset()
    periods: frozenset[str] = frozenset()


def claims(task_id: str, output: Output) -> list[Claim]:
    """The figures of one output, at most MAX_CLAIMS."""
    if isinstance(output, str):
        document = _document(output)
        found = _of_text(task_id, output[:MAX_CHARACTERS]) if document is None else _of_json(task_id, document)
    else:
        found = _of_json(task_id, output)
    kept: list[Claim] = []
    for claim in found:
        kept.append(claim)
        if len(kept) == MAX_CLAIMS:
            break
    return kept


def _document(text: str) -> Output:
    """The JSON value that a text is, if it is an object or a list."""
    if len(text) > MAX_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _of_json(task_id: str, output: Output) -> Iterator[Claim]:
    waiting: list[tuple[Any, tuple[str, ...], frozenset[str], frozenset[str], int]] = [
        (output, (), frozenset(), frozenset(), 0)
    ]
    while waiting:
        value, path, names, periods, depth = waiting.pop()
        if depth > MAX_DEPTH:
            continue
        if isinstance(value, list):
            waiting.extend((each, path, names, periods, depth + 1) for each in cast("list[Any]", value)[:MAX_CLAIMS])
        elif isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            names, periods = names | _names_of(fields), periods | _periods_of(fields)
            waiting.extend((each, (*path, key), names, periods, depth + 1) for key, each in fields.items())
        elif isinstance(value, str):
            if path and len(value) > MAX_NAME:
                yield from _of_text(task_id, value[:MAX_CHARACTERS])
            elif path and value[:1].isdigit():
                yield from _field(task_id, path, value, names, periods)
        elif path and isinstance(value, int | float) and not isinstance(value, bool):
            yield from _field(task_id, path, value, names, periods)


def _names_of(fields: Mapping[str, Any]) -> frozenset[str]:
    """The short texts of an object: what it is about."""
    texts = (text for text in fields.values() if isinstance(text, str) and len(text) <= MAX_NAME)
    return roots(token for text in texts if not text[:1].isdigit() for token in tokens_of(text))


def _periods_of(fields: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        str(value) for key, value in fields.items() if key in ("year", "date", "month", "quarter", "day", "period")
    )


def _field(
    task_id: str, path: tuple[str, ...], value: object, names: frozenset[str], periods: frozenset[str]
) -> Iterator[Claim]:
    key = path[-1]
    if key.lower() in _GENERIC_KEYS or str(value) in periods or len(key) < 3:
        return
    tokens = [token for part in path for token in re.findall(r"[A-Za-z][a-z]*|[A-Z]+", part.replace("_", " "))]
    if not (words := roots(tokens)):
        return
    shown = str(value)
    found = figures(f"{shown} %" if tokens[-1].lower() in ("percent", "pct") else shown, 2)
    if len(found) == 1:
        quote = f"{'.'.join(path)}: {json.dumps(value, ensure_ascii=False)}"[:MAX_QUOTE]
        yield Claim(
            task_id, quote, found[0], words | names, names, frozenset(), periods, answers(tokens), is_field=True
        )


def _of_text(task_id: str, text: str) -> Iterator[Claim]:
    about = About()
    lines = text.splitlines()
    columns: list[str] = []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("|"):
            cells = _cells(stripped)
            if number + 1 < len(lines) and re.fullmatch(r"[|\s:-]+", lines[number + 1].strip() or "x"):
                columns = cells
            elif columns and not re.fullmatch(r"[|\s:-]+", stripped):
                yield from _of_row(task_id, cells, columns, about)
            continue
        columns = []
        if stripped.startswith("#") or (stripped.endswith(":") and len(stripped) <= MAX_NAME):
            tokens = tokens_of(stripped)
            about = About(_names(tokens) | roots(tokens), _periods(stripped))
            continue
        if any(letter.isdigit() for letter in stripped) or " " in stripped:
            for sentence in _SENTENCE.split(_LIST_MARK.sub("", line, count=1)):
                yield from _of_sentence(task_id, sentence, about)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def _of_row(task_id: str, cells: list[str], columns: list[str], about: About) -> Iterator[Claim]:
    """A row of a Markdown table: each figure is about its row and its column."""
    row = tokens_of(cells[0])
    for column, cell in zip(columns[1:], cells[1:], strict=False):
        found = figures(cell, 2)
        if len(found) == 1:
            tokens = [*row, *tokens_of(column)]
            names = roots(row) | roots(token for token in tokens_of(column) if token[0].isupper())
            periods = _periods(f"{cells[0]} {column}") or about.periods
            quote = f"{cells[0]} | {column}: {cell}"[:MAX_QUOTE]
            yield Claim(task_id, quote, found[0], roots(tokens), names, frozenset(), periods, answers(tokens))


def _of_sentence(task_id: str, sentence: str, about: About) -> Iterator[Claim]:
    every = figures(sentence, MAX_IN_SENTENCE)
    labels = {figure.start: name for figure in every if (name := _label(sentence, figure))}
    if not (found := [figure for figure in every if figure.start not in labels]):
        return
    spans = _spans(sentence, found)
    lead = sentence[spans[0][0] : found[0].start]
    quote = sentence.strip()
    for figure in found:
        begin, end = next((span for span in spans if span[0] <= figure.start < span[1]), (0, len(sentence)))
        others = [other for other in found if other is not figure and begin <= other.start < end]
        clause = _without(sentence[begin:end], [figure, *others], begin)
        tokens = [*_words_of(clause), *(name for start, name in labels.items() if begin <= start < end)]
        names = _names(tokens)
        if not names and not roots(tokens_of(sentence[begin : figure.start])):  # it does not say what it is about
            inherited = tokens_of(lead) if begin else []
            names, tokens = _names(inherited) or about.names, [*inherited, *tokens]
        if figure.dimension == YEAR and not roots(tokens) & _EVENTS:
            continue  # a year says when something was, and is only a claim where something happened in it
        counted = roots(_counted(sentence, figure)) if figure.dimension == "" else frozenset[str]()
        elsewhere = frozenset[str]().union(*(roots(_counted(sentence, other)) for other in others)) - counted
        words = (roots(tokens) | names) - elsewhere
        periods = _periods(sentence, without=figure if figure.dimension in (YEAR, DATE) else None) or about.periods
        yield Claim(
            task_id,
            quote if len(quote) <= MAX_QUOTE else _around(quote, figure),
            figure,
            words,
            names & words,
            counted,
            periods,
            answers(tokens),
            direction(tokens),
        )


def _label(sentence: str, figure: Figure) -> str:
    """The name that a number is a part of, such as `Step 3` or `Postgres 16`; empty for a figure."""
    before = sentence[: figure.start][-40:]
    if (match := _LABEL.search(before)) is not None:
        return f"{match[0].strip().rstrip('.')}_{figure.shown.strip()}"
    name = _NAME_BEFORE.search(before)
    if name is None or figure.dimension or figure.rate or not figure.shown.isdecimal() or not root(name[1]):
        return ""
    after = re.match(r" ([a-z]+)", sentence[figure.end : figure.end + 30])
    return "" if after is not None and after[1].endswith("s") else f"{name[1]}_{figure.shown}"


def _spans(sentence: str, found: list[Figure]) -> list[tuple[int, int]]:
    """The clauses of a sentence; what has no figure belongs to the clause before it, at the beginning to the next."""
    cuts = [0]
    for cut in _CLAUSE.finditer(sentence):
        if any(figure.start < cut.end() and cut.start() < figure.end for figure in found):
            continue
        has_before = any(cuts[-1] <= figure.start < cut.start() for figure in found)
        after = next((figure for figure in found if figure.start >= cut.end()), None)
        if has_before and after is not None:
            cuts.append(cut.end())
    return list(zip(cuts, [*cuts[1:], len(sentence)], strict=True))


def _words_of(clause: str) -> list[str]:
    """The words of a clause but for its months and days, which are periods."""
    return [token for token in tokens_of(clause) if not _MONTH.fullmatch(token)]


def _without(clause: str, found: list[Figure], begin: int) -> str:
    """A clause with a gap where its figures stand, so that a unit is no word of it."""
    for figure in found:
        start, end = max(0, figure.start - begin), max(0, figure.end - begin)
        clause = f"{clause[:start]}{' ' * (end - start)}{clause[end:]}"
    return clause


def _counted(sentence: str, figure: Figure) -> list[str]:
    """The words right after a figure: what it counts."""
    match = re.match(r"(?:\s+[^\W\d_][\w'’-]*){1,3}", sentence[figure.end : figure.end + 80])
    tokens = match[0].split() if match is not None else []
    kept: list[str] = []
    for token in tokens:
        if not root(token):
            break
        kept.append(token)
    return kept


def _names(tokens: list[str]) -> frozenset[str]:
    """The words that are names, or may be: with a capital, or with a digit in it. Months and days are none."""
    found = [token for token in tokens if not token.islower() or any(map(str.isdigit, token))]
    kept = [token for token in found if not _PERIOD.fullmatch(token)]
    return roots(token for token in kept if token.lower() not in _OPENERS)


def _periods(text: str, without: Figure | None = None) -> frozenset[str]:
    if without is not None:
        text = f"{text[: without.start]} {text[without.end :]}"
    found = {match.upper().replace(" ", "") for match in _PERIOD.findall(text)}
    return frozenset(found | set(_MONTH.findall(text)))


def _around(quote: str, figure: Figure) -> str:
    """A long sentence cut so that its figure is in it."""
    begin = max(0, min(figure.start - MAX_QUOTE // 2, len(quote) - MAX_QUOTE))
    return f"{'…' if begin else ''}{quote[begin : begin + MAX_QUOTE - 2]}…"
