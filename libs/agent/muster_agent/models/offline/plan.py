"""Plans by rules: what a request asks for, in which order, and who of the team fits each part of it.

The rules, first one that applies: steps that follow each other become a chain; a list becomes a map and a task that
reads it; subjects become a grid of subjects and stages of work; a question to everybody becomes a broadcast; what one
role knows most about is one task; anything else goes through the stages of work.
"""

import re
from itertools import pairwise

from muster_agent.models.offline.fit import VERBS, Stage, best, fits, kind_of, stages_of
from muster_agent.models.offline.grid import by_subject, new_id, short
from muster_agent.models.offline.numbers import with_number
from muster_agent.models.offline.subjects import LEAD_WORDS, Listed, listed, subjects
from muster_agent.models.port import PlanBrief
from muster_protocol.plan import MAX_TASKS, Plan, TaskSpec
from muster_protocol.unfold import MapOver, Reduce, Template, unfold

MAX_SUBJECTS = 12  # of a grid; a longer list is a map
MAX_STAGES = 10
MIN_STEP_WORDS = 2
SHORT = 6  # words of a request that says so little that the role is named beside it
_THEN = re.compile(
    r"(?<!\bsince)(?<!\bby)(?<!\buntil)(?<!\bback)(?<!\bfrom)(?:\s*[,;.]\s*|\s+)(?:and\s+)?"
    r"(?:then|after that|after which|afterwards|finally|lastly)\b,?\s+",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|whenever|once)\b[^.;]*$", re.IGNORECASE)  # "if it rains, then …" is no step
_FIRST = re.compile(r"^\s*first(?:ly)?\b,?\s*", re.IGNORECASE)
_EVERYBODY = re.compile(
    r"\b(?:all|every|each|different|several|multiple)\s+(?:of\s+(?:the|your|our)\s+)?"
    r"(?:perspectives?|angles?|sides?|viewpoints?|points of view|departments?|disciplines?|experts?|specialists?|"
    r"workers?|teams?|of you)\b|\beverybody\b|\beveryone\b|\bcomprehensive(?:ly)?\b",
    re.IGNORECASE,
)


def plan_by_rules(brief: PlanBrief) -> Plan:
    """A plan in which every task names roles of the team; it has the wanted number of tasks, if one is given."""
    text = brief.text.strip()
    stages = stages_of(brief.roles)
    most = min(brief.max_tasks or MAX_TASKS, MAX_TASKS)
    wanted = None if brief.num_tasks is None else min(brief.num_tasks, most)
    if (found := listed(brief.text)) is not None and (plan := _by_entry(found, stages, wanted or most)) is not None:
        tasks = list(plan)
    elif wanted is None and (asked := _broadcast(text, stages, most)) is not None:
        return Plan(goal=text, tasks=asked)
    else:
        tasks = _by_step(text, stages)
    return Plan(goal=text, tasks=tuple(with_number(tasks, wanted or min(len(tasks), most))))


def steps_of(text: str) -> list[str]:
    """The steps of a request that says which comes after which; the whole text if it says nothing."""
    steps = [""]
    start = 0
    for found in _THEN.finditer(text):
        before = text[start : found.start()]
        if _CONDITION.search(before) or min(len(before.split()), len(text[found.end() :].split())) < MIN_STEP_WORDS:
            continue
        steps[-1] = before
        steps.append("")
        start = found.end()
    steps[-1] = text[start:]
    if len(steps) == 1:
        return [text]
    steps[0] = _FIRST.sub("", steps[0])
    return [step.strip(" ,;.") for step in steps]


def _by_step(text: str, stages: list[Stage]) -> list[TaskSpec]:
    """The tasks of a request, or of each of its steps, which then needs those of the step before."""
    steps = steps_of(text)
    if len(steps) == 1 or not all(len(step.split()) >= MIN_STEP_WORDS for step in steps):
        return _by_what_is_asked(text, stages)
    tasks: list[TaskSpec] = []
    before: tuple[str, ...] = ()
    for step in steps:
        stage = best(step, stages)
        named = subjects(step) if stage.kind in ("gather", "other") else []
        parts = [f"{VERBS[stage.kind]} {name}: {step}" for name in named[:MAX_SUBJECTS]] or [step]
        ids: list[str] = []
        for part, name in zip(parts, named or [""], strict=False):
            kind = kind_of(step) or short(stage)
            words = f"{kind}-{name}" if name else kind
            task = TaskSpec(id=new_id(words, tasks), description=part, tag=stage.role.name, dependencies=before)
            tasks.append(task)
            ids.append(task.id)
        before = tuple(ids)
    return tasks


def _by_what_is_asked(text: str, stages: list[Stage]) -> list[TaskSpec]:
    found = subjects(text)
    if found and 1 < len(stages) <= MAX_STAGES:
        chosen = _of_each_kind(text, stages)
        if len(chosen) > 1 and len(found) <= MAX_SUBJECTS:
            return by_subject(text, found, chosen)
        over = Listed(text[: text.find(found[0])].strip(" :,"), tuple(found))
        if (plan := _by_entry(over, chosen, MAX_TASKS)) is not None:
            return list(plan)
    if (only := _expert(text, stages)) is not None:
        return [TaskSpec(id=new_id(short(only), []), description=text, tag=only.role.name)]
    return _by_stage(text, stages)


def _expert(text: str, stages: list[Stage]) -> Stage | None:
    """The one role that can do all of it: it knows most about the words, and what it makes is what was asked for."""
    if len(stages) == 1:
        return stages[0]
    if any(stage.role.is_function for stage in stages):
        return None  # it reads no words: what is asked of its team goes through it
    scores = fits(text, [stage.role for stage in stages])
    found = max(stages, key=lambda stage: scores[stage.role.name])
    return found if scores[found.role.name] > 0 and found.kind not in ("write", "check") else None


def _of_each_kind(text: str, stages: list[Stage]) -> list[Stage]:
    """Of the roles of each kind those that fit best; all of them where nothing tells them apart."""
    scores = fits(text, [stage.role for stage in stages])
    most = {stage.kind: 0.0 for stage in stages}
    for stage in stages:
        most[stage.kind] = max(most[stage.kind], scores[stage.role.name])
    return [stage for stage in stages if scores[stage.role.name] >= most[stage.kind]]


def _by_stage(text: str, stages: list[Stage]) -> list[TaskSpec]:
    """One task for each role that fits: those of one kind at the same time, each kind after the one before."""
    chosen = _of_each_kind(text, stages)
    topic = _topic(text)
    tasks: list[TaskSpec] = []
    before: tuple[str, ...] = ()
    for kind in dict.fromkeys(stage.kind for stage in chosen):
        same = [stage for stage in chosen if stage.kind == kind]
        current: list[str] = []
        for stage in same:
            what = f"{VERBS[kind]} {'the answer to: ' + text if kind == 'write' else topic}"
            is_plain = len(same) == 1 and len(text.split()) > SHORT
            description = what if is_plain else f"{what} (as {stage.role.name})"
            task = TaskSpec(
                id=new_id(short(stage), tasks), description=description, tag=stage.role.name, dependencies=before
            )
            tasks.append(task)
            current.append(task.id)
        before = tuple(current)
    return tasks


def _topic(text: str) -> str:
    """What the request is about: its words without the verbs before them; a question as it was asked."""
    if text.endswith("?"):
        return f'"{text}"'
    words = text.rstrip(" .?!").split()
    while words and words[0].lower().strip(",:") in LEAD_WORDS:
        words = words[1:]
    return " ".join(words) or text


def _broadcast(text: str, stages: list[Stage], most: int) -> tuple[TaskSpec, ...] | None:
    """One task for all roles that have tags in common, if the request is meant for everybody; then whoever writes."""
    asked = [stage.role for stage in stages if stage.kind not in ("write", "check")]
    writers = [stage.role for stage in stages if stage.kind == "write"]
    if len(asked) < 2 or not _EVERYBODY.search(text) or len(asked) + 1 > most:
        return None
    shared = tuple(tag for tag in asked[0].tags if all(tag in role.tags for role in asked))
    if not shared or any(set(shared) <= set(stage.role.tags) for stage in stages if stage.role not in asked):
        return None
    everybody = TaskSpec(id="everybody", description=text, match_all=shared, broadcast=True)
    if not writers:
        return (everybody,)
    report = f"Write up the answer to: {text}"
    return everybody, TaskSpec(id="report", description=report, tag=writers[-1].name, dependencies=("everybody",))


def _by_entry(found: Listed, stages: list[Stage], most: int) -> tuple[TaskSpec, ...] | None:
    """A task for each entry of a list, and one that reads them all; several entries for a task where few are wanted."""
    if most < 2:
        return None
    about = found.about or "Work on each"
    readers = [stage for stage in stages if stage.kind == "write"]
    makers = [stage for stage in stages if stage.kind not in ("write", "check")] or stages
    count = min(len(found.entries), most - 1)
    ends = [len(found.entries) * number // count for number in range(count + 1)]
    items = ["; ".join(found.entries[start:end]) for start, end in pairwise(ends)]
    template = Template(description=f"{_braced(about)}: {{item}}", tag=best(about, makers).role.name)
    reduce = Reduce(
        description=f"Put together what was found for: {_braced(about)}",
        tag=(readers or [best(about, stages)])[-1].role.name,
        expected_output="one answer for the whole list, with what is missing named",
    )
    return unfold(MapOver(template=template, items=tuple(items), reduce=reduce)).tasks


def _braced(text: str) -> str:
    """The text of a person as a text of a template: what looks like a blank is none."""
    return re.sub(r"\{([A-Za-z_][\w.-]*)\}", r"{{\1}}", text)
