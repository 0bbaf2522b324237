"""The words by which two figures are about the same thing: stems, synonyms, and words that tell things apart. Pure."""

import re
from collections.abc import Iterable
from functools import lru_cache

TOKEN = re.compile(r"[^\W\d_][\w'’-]*")
MAX_KNOWN_WORDS = 20_000

_STOP_WORDS = """
a about above according after all almost also although an and any approximately are around as at be been
before being below between both but by came can circa come did do does down each end even every exactly first
five for four from had has have he her his how however if in into is it its just least less made make makes
many more most much nearly no not now of on only or other our out over own per planned rather reached reach
said same she should since so some stand stands stood still such than that the their them then there these
they this those three to total totals two under until up upto very was we went were what when where which
while who will with within would year years yes you your going goes amounts amounted put worldwide currently
overall today time use used uses using rate score scored scores found finding report reports reported shows
show showed estimated estimate estimates value figure figures number numbers result results count counts us
runs run get gets got give gives given offer offers offering guarantees guarantee needs need comes counted
serves serve provides provide company team million billion thousand percent dollars euros usd eur
"""
_SYNONYMS = """
high height tall elevation altitude highest
price cost expensive charge fee pricing
population inhabitants residents
revenue sales turnover
weigh weight weighs mass
long length longest
employees workers staff workforce employ personnel
founded established
lasts takes duration life lifetime term runtime
contains holds capacity
visitors guests visits
wide width
deep depth
fast speed
old age
area surface
effective effectiveness efficacy
earnings income
average mean averages
participants patients subjects
attended attendees attendance
peaked peak
published publication
enrolled enrolment enrollment
latency delay
"""
_UP = "rise rises rose risen grow grows grew grown increase increases increased climbed gain gained jumped up growth"
_DOWN = "fall falls fell fallen drop drops dropped decline declined decrease decreased shrank lost loses down"
# Each line is one question; two figures that answer it in different ways are about different things.
_CONTRASTS = """
minimum min lowest smallest cheapest | maximum max highest largest peak peaked | average mean averages | median
gross | net | operating
revenue sales turnover | profit loss | cost costs price expense | rent | debt | budget | tax
first | second | third | fourth | fifth | last
north northern | south southern | east eastern | west western
men male | women female
imports imported import | exports exported export
input | output
read reads | write writes written
before | after
domestic | international | foreign
summer | winter | spring | autumn
upload | download
monthly month | annual annually yearly | weekly week | daily day | hourly hour
memory | disk | storage
memory disk storage | cpu
founded established | public | closed | opened | published | translated | died | born | completed
old | new
adults | children
high height tall elevation altitude | long length | wide width | deep depth | thick
start starts leaves leave begins | arrives arrive ends end
"""
STRICT = 0  # the question of the first line: whoever does not answer it speaks of something else


@lru_cache(MAX_KNOWN_WORDS)
def _stem(word: str) -> str:
    """A word without its endings; crude, and the same for `publishes` and `published`."""
    if word.endswith(("'s", "’s")):
        word = word[:-2]
    if word.endswith("ies") and len(word) > 4:
        word = f"{word[:-3]}y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_STOP = frozenset(_STOP_WORDS.split())
_CANONICAL = {_stem(word): _stem(line.split()[0]) for line in _SYNONYMS.strip().splitlines() for word in line.split()}
_DIRECTIONS = {_stem(word): sign for words, sign in ((_UP, 1), (_DOWN, -1)) for word in words.split()}
_ANSWERS: dict[str, list[tuple[int, int]]] = {}
for _question, _line in enumerate(_CONTRASTS.strip().splitlines()):
    for _option, _words in enumerate(_line.split("|")):
        for _word in _words.split():
            _ANSWERS.setdefault(_stem(_word), []).append((_question, _option))


@lru_cache(MAX_KNOWN_WORDS)
def root(word: str) -> str:
    """The one form of a word and of what means the same; empty for words that say nothing about a subject."""
    lower = word.lower()
    if lower in _STOP:
        return ""
    stem = _stem(lower)
    return "" if stem in _DIRECTIONS else _CANONICAL.get(stem, stem)


def roots(words: Iterable[str]) -> frozenset[str]:
    return frozenset(found for word in words if (found := root(word)))


def tokens_of(text: str) -> list[str]:
    """The words of a text; a capital letter alone, as in Team A, is a name unless the text begins with it."""
    return [
        f"letter_{match[0]}"
        if len(match[0]) == 1 and match[0].isupper() and match[0] != "I" and match.start()
        else match[0]
        for match in TOKEN.finditer(text)
    ]


def direction(words: Iterable[str]) -> int:
    """1 where something rises, -1 where it falls, 0 where neither is said."""
    return next((sign for word in words if (sign := _DIRECTIONS.get(_stem(word.lower())))), 0)


def answers(words: Iterable[str]) -> frozenset[tuple[int, int]]:
    """What these words answer to the questions that tell things apart."""
    found: set[tuple[int, int]] = set()
    for word in words:
        found.update(_ANSWERS.get(_stem(word.lower()), ()))
    return frozenset(found)


def tell_apart(these: frozenset[tuple[int, int]], those: frozenset[tuple[int, int]]) -> bool:
    """Whether both answer a question, and differently; the strict one must be answered by both or by neither."""
    for question in {question for question, _ in these | those}:
        mine = {option for asked, option in these if asked == question}
        others = {option for asked, option in those if asked == question}
        if not mine & others and ((mine and others) or question == STRICT):
            return True
    return False
