"""Whether the description of a task says what to do, or only that something is to be done. Pure, and needs no model.

A description is vague when next to nothing is left of it without the words that would fit any task. Words that are
not listed count for it, so that what is said in another language or of a subject we do not know is never vague.
"""

import re

ENOUGH = 2  # words of its own that make a description plain

# what one can do with anything …
_ACTIONS = """
accomplish achieve address aggregate analyse analyze answer apply approach assess assist begin build carry check
clean collect combine come compile complete conduct consider consolidate continue coordinate create deal decide
deliver design determine develop discuss do done draw end enhance ensure evaluate examine execute explore extract
figure find finish fix follow gather generate get give go handle help identify implement improve include inspect
integrate investigate keep know learn look make manage merge move obtain optimise optimize organise organize
output perform plan prepare present proceed process produce provide pull put refine report research resolve
respond return review run see set share show solve sort start structure study submit summarise summarize support
synthesise synthesize take tell test think transform try understand update use validate verify work write
"""
# … to anything …
_THINGS = """
activity analysis answer anything area aspect assignment batch case code conclusion content data dataset datum
deliverable detail document element everything feedback file finding goal idea info information input insight
issue item job kind list lot material matter need objective option output overview part pattern piece point
problem process project quality question recommendation record report request requirement research resource
response result review section set solution something source step stuff subject subtask summary system
task text thing topic trend type user way whatever workflow
"""
# … however one does it …
_MANNERS = """
accurate accurately additional additionally appropriate appropriately available best better careful carefully
clear clearly complete completely comprehensive correct correctly current deep deeply detailed different
effective efficient entire extra extracted final first following full fully further general given good high
important key last latest main more most necessary necessarily needed new next other overall possible potential
previous proper properly provided quick quickly relevant remaining required second several some specific
suitable thorough thoroughly useful various well whole
"""
# … and what holds a sentence together
_GLUE = """
a about above according all also an and any are as at away back be below both but by can could each every for
forward from how if in into is it its just let like may me must my of off on once one or our out over please
shall should so such than that the their them then there these they this those through to too together up us via
was we were what when where which while who whom why will with within without would you your
"""
_FITS_ANYTHING = frozenset(f"{_ACTIONS} {_THINGS} {_MANNERS} {_GLUE}".split())
_PART_OF = re.compile(r"^\W*(sub)?(task|part|step)\s+\d+(\s+of(\s+\d+)?)?\s*:", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_NAMES_SOMETHING = re.compile(
    r"https?://|[\w-]/[\w-]|\w_\w|\w\.[a-z]{2,4}\b|[\"“”`«»]\w|(?<=\w )[A-Z]\w*[A-Z]|(?<=[a-z,] )[A-Z][a-z]"
)  # an address, a path, a name in code, a quotation, an acronym or a name within a sentence; in linear time


def is_vague(description: str) -> bool:
    """Whether it would fit any task: it names nothing, and has fewer than two words that are its own."""
    text = _PART_OF.sub("", description)
    if _NAMES_SOMETHING.search(text):
        return False
    own = {word for word in _WORD.findall(text.lower()) if not word.isdigit() and not _fits_anything(word)}
    return len(own) < ENOUGH and all(word.isascii() for word in own)  # not every script has spaces between words


def _fits_anything(word: str) -> bool:
    word = word.removesuffix("'s").removesuffix("’s")
    forms = (word, word.removesuffix("s"), word.removesuffix("es"), f"{word.removesuffix('ies')}y")
    return any(form in _FITS_ANYTHING for form in forms)
