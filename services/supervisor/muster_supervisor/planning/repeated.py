"""Which tasks of a plan are the same work: word for word, or nearly. Pure, and linear in the plan."""

import json
import re
from collections.abc import Iterable

from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.subjects import TaskId

Groups = list[tuple[TaskId, ...]]

_WORD = re.compile(
    r"-?\d+(?:[.,]\d+)*|\w+|[^\w\s.,;:!?\"'`()\[\]{}-]"
)  # numbers, words, signs with a meaning such as %
_SILENT = (
    "a all also an and any are at available be brief briefly by carefully complete comprehensive concise current "
    "currently detailed during each every following for full fully given his i in is it its kindly latest main me "
    "new of on our overall please recent relevant short some that the their them then these they this those thorough "
    "thoroughly us useful various we which with you your"
)
_SAYS_NOTHING = frozenset(_SILENT.split())
_TURNING = (
    "after against before except excluding exclude from if instead into less minus more no not only or per than to "
    "until unless versus vs without"
)
_ORDER_COUNTS = frozenset(_TURNING.split())  # with one of these, the same words in another order may say something else
_VERBS = (  # each line means one thing
    "find locate retrieve collect gather obtain get fetch identify search look research",
    "calculate compute determine",
    "write draft compose author",
    "summarise summarize outline condense",
    "analyse analyze examine evaluate assess investigate study",
    "list enumerate name",
    "verify validate confirm check",
    "make create produce generate prepare",
    "explain describe",
)
_ONE_VERB = {word: line.partition(" ")[0] for line in _VERBS for word in line.split()}
_LITTLE_WORDS = frozenset({"out", "up"})  # of a verb, as in "look up"


def same_work(plan: Plan) -> Groups:
    """Groups of tasks that are the same work: with the same tags, dependencies and inputs, and the same words.

    Copies of a broadcast are meant to be the same, and so are the tasks of which a plan selects the best.
    """
    texts = [" ".join(_WORD.findall(task.description.lower())) or task.description for task in plan.tasks]
    if len(set(texts)) == len(texts):
        return []
    counted = set(_compared(plan))
    return _groups((task, text) for task, text in zip(plan.tasks, texts, strict=True) if task.id in counted)


def nearly_same_work(plan: Plan, asked: Iterable[TaskSpec]) -> Groups:
    """Groups of these tasks that differ only in words that say nothing, in the verb for one thing or in their order.

    Two numbers, names or signs that differ are two tasks, and so is everything that is no synonym that we know.
    """
    counted = set(_compared(plan))
    return _groups((task, _gist(task.description)) for task in asked if task.id in counted)


def _compared(plan: Plan) -> Iterable[TaskId]:
    needed = {need for task in plan.tasks for need in task.dependencies}
    is_select = plan.aggregation == "select"
    return (task.id for task in plan.tasks if not task.broadcast and not (is_select and task.id not in needed))


def _groups(texts: Iterable[tuple[TaskSpec, object]]) -> Groups:
    groups: dict[tuple[object, ...], list[TaskId]] = {}
    for task, text in texts:
        tags = (task.tag, task.worker, frozenset(task.match_all), frozenset(task.match_some))
        inputs = json.dumps(task.inputs, sort_keys=True, default=str) if task.inputs else ""
        groups.setdefault((text, tags, frozenset(task.dependencies), inputs), []).append(task.id)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _gist(description: str) -> tuple[str, ...]:
    """The words that say something, in their order where that may count; the description itself if there are none."""
    words = _WORD.findall(description.lower())
    said = [_plain(word) for word in words if word not in _SAYS_NOTHING and word not in _LITTLE_WORDS]
    if not said:
        return (description,)
    return tuple(said) if _ORDER_COUNTS & set(words) else tuple(sorted(set(said)))


def _plain(word: str) -> str:
    """One verb for those that mean the same, and the singular of what looks like a plural."""
    if word in _ONE_VERB:
        return _ONE_VERB[word]
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word
