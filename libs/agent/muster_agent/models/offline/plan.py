"""Plans by rules: a task for each subject that a request names and each stage of work that a role stands for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster_agent.models.port import PlanBrief, RoleCard
from muster_protocol.plan import MAX_TASKS, Plan, TaskSpec

MAX_SUBJECTS = 12  # a longer list should be sent as a map
MAX_STAGES = 10
_SEPARATOR = re.compile(r"\s*,\s*(?:and|or)\s+|\s*,\s*|\s+(?:and|or|vs\.?|versus|against|&)\s+", re.IGNORECASE)
_COMPARES = re.compile(r"\b(compar|contrast|versus|vs\b|between|differ|each of|rank)", re.IGNORECASE)
_PROPER = re.compile(r"[A-Z0-9][\w.+#-]*")
_LEAD = (
    "a about an analyse analyze are assess benchmark between choose compare contrast create describe discuss do "
    "draft each evaluate examine explain find for from give how i in investigate is list make of on outline pick "
    "please prepare produce rank report research review study summarise summarize tell that the their three to "
    "two we weigh what which with write"
)
_LEAD_WORDS = frozenset(_LEAD.split())
_END = (
    "about as at based because by for from i if in into its it my on our regarding so that the their then there "
    "they to using we when where which while who with you your"
)
_END_WORDS = frozenset(_END.split())
_STAGES = (  # by stems; the order is the order of work
    ("gather", ("research", "search", "find", "gather", "collect", "retriev", "fetch", "extract", "read", "scout")),
    ("analyse", ("analy", "comput", "calculat", "compar", "evaluat", "assess", "quant", "data", "code", "build")),
    ("write", ("writ", "draft", "report", "summar", "compos", "format", "document", "edit", "present")),
    ("check", ("review", "check", "verif", "critic", "proof", "audit", "test")),
)
_VERBS = {"gather": "Research", "analyse": "Analyse", "write": "Write up", "check": "Check", "other": "Work on"}


@dataclass(frozen=True, slots=True)
class Stage:
    """A role, and the kind of work that its name, tags or description stand for."""

    role: RoleCard
    kind: str


def plan_by_rules(brief: PlanBrief) -> Plan:
    """A plan in which every task names a role of the team; it has the wanted number of tasks, if one is given."""
    text = " ".join(brief.text.split())
    stages = stages_of(brief.roles)
    found = subjects(text)[:MAX_SUBJECTS]
    is_grid = found and 1 < len(stages) <= MAX_STAGES
    tasks = _by_subject(text, found, stages) if is_grid else _by_role(text, stages)
    most = min(brief.max_tasks or MAX_TASKS, MAX_TASKS)
    wanted = min(brief.num_tasks or len(tasks), most)
    while len(tasks) > wanted:
        tasks = _with_one_less(tasks)
    return Plan(goal=text, tasks=tuple(_with_more(tasks, wanted - len(tasks))))


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
            if not _PROPER.fullmatch(word) or word.lower() in _LEAD_WORDS:
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
        starts = [index for index, word in enumerate(words) if word.lower() in _LEAD_WORDS]
        words = words[starts[-1] + 1 :] if starts else words
    kept: list[str] = []
    for word in words[:5]:
        if word.lower() in _END_WORDS | _LEAD_WORDS:
            break
        kept.append(word)
    return " ".join(kept) if len(kept) <= 4 else ""


def stages_of(roles: Sequence[RoleCard]) -> list[Stage]:
    """The roles in the order of their kinds of work; within a kind in the order of the team file."""
    order = {kind: place for place, (kind, _) in enumerate(_STAGES)} | {"other": 1}
    return sorted((Stage(role, _kind(role)) for role in roles), key=lambda stage: order[stage.kind])


def _kind(role: RoleCard) -> str:
    """The kind by the first known word in the name, else in the tags, else in the description."""
    for words in (role.name, " ".join(role.tags), role.description):
        places = [
            (match.start(), kind)
            for kind, stems in _STAGES
            if (match := re.search(rf"(?:^|[^a-z])(?:{'|'.join(stems)})", words.lower()))
        ]
        if places:
            return min(places)[1]
    return "other"


def _by_subject(text: str, named: Sequence[str], stages: Sequence[Stage]) -> list[TaskSpec]:
    """Every stage but the last for each subject, then one comparison of all, then the last stage for everything."""
    *middle, last = stages
    focus = _focus(text)
    tasks: list[TaskSpec] = []
    previous: dict[str, tuple[str, ...]] = dict.fromkeys(named, ())
    for stage in middle:
        for subject in named:
            task = TaskSpec(
                id=_new_id(f"{_short(stage)}-{subject}", tasks),
                description=f"{_VERBS[stage.kind]} {subject}{focus}",
                tag=stage.role.name,
                dependencies=previous[subject],
                expected_output=f"findings about {subject}, with sources",
            )
            tasks.append(task)
            previous[subject] = (task.id,)
    ends = tuple(task_id for ids in previous.values() for task_id in ids)
    if middle[-1].kind != "gather":
        everything = f"{', '.join(named[:-1])} and {named[-1]}"
        compared = TaskSpec(
            id=_new_id("compare", tasks),
            description=f"Compare {everything}{focus}",
            tag=middle[-1].role.name,
            dependencies=ends,
            expected_output="the differences in numbers, and which is best in what",
        )
        found = tuple(task.id for task in tasks if not task.dependencies)
        tasks.append(compared)
        ends = (compared.id, *found)
    tasks.append(_closing(text, last, ends, tasks))
    return tasks


def _by_role(text: str, stages: Sequence[Stage]) -> list[TaskSpec]:
    """One task for each role: roles of one kind in parallel, each kind after the one before."""
    if len(stages) == 1:
        return [TaskSpec(id=_new_id(_short(stages[0]), []), description=text, tag=stages[0].role.name)]
    tasks: list[TaskSpec] = []
    before: tuple[str, ...] = ()
    for kind in dict.fromkeys(stage.kind for stage in stages):
        current: list[str] = []
        for stage in (stage for stage in stages if stage.kind == kind):
            task = TaskSpec(
                id=_new_id(_short(stage), tasks),
                description=f"{text} ({_VERBS[kind].lower()}, as {stage.role.name})",
                tag=stage.role.name,
                dependencies=before,
            )
            tasks.append(task)
            current.append(task.id)
        before = tuple(current)
    return tasks


def _closing(text: str, last: Stage, needs: tuple[str, ...], tasks: list[TaskSpec]) -> TaskSpec:
    return TaskSpec(
        id=_new_id("report" if last.kind == "write" else _short(last), tasks),
        description=f"{_VERBS[last.kind]} the answer to: {text}",
        tag=last.role.name,
        dependencies=needs,
        expected_output="a complete answer in Markdown",
    )


def _with_one_less(tasks: list[TaskSpec]) -> list[TaskSpec]:
    """The plan with one task less: two tasks of one role become one, or else the first task is left out."""
    for index, second in enumerate(tasks):
        first = next((task for task in tasks[:index] if task.tag == second.tag), None)
        if first is not None and first.id not in second.dependencies and second is not tasks[-1]:
            both = first.model_copy(
                update={
                    "description": f"{first.description}; {second.description}",
                    "dependencies": tuple(dict.fromkeys((*first.dependencies, *second.dependencies))),
                }
            )
            rest = [both if task is first else task for task in tasks if task is not second]
            return _ordered(_replaced(rest, second.id, (first.id,)))
    gone = tasks[0]
    return _replaced(tasks[1:], gone.id, gone.dependencies)


def _replaced(tasks: list[TaskSpec], gone: str, instead: tuple[str, ...]) -> list[TaskSpec]:
    def needs(task: TaskSpec) -> tuple[str, ...]:
        swapped = (new for old in task.dependencies for new in (instead if old == gone else (old,)))
        return tuple(dict.fromkeys(task_id for task_id in swapped if task_id != task.id))

    return [task.model_copy(update={"dependencies": needs(task)}) for task in tasks]


def _ordered(tasks: list[TaskSpec]) -> list[TaskSpec]:
    """The tasks in their order, except that each comes after those that it depends on."""
    placed: dict[str, TaskSpec] = {}
    waiting = list(tasks)
    while waiting:
        ready = [task for task in waiting if all(need in placed for need in task.dependencies)]
        if not ready:
            return tasks
        placed[ready[0].id] = ready[0]
        waiting.remove(ready[0])
    return list(placed.values())


def _with_more(tasks: list[TaskSpec], count: int) -> list[TaskSpec]:
    """The tasks, and `count` copies of those without dependencies; whoever reads a task also reads its copies."""
    sources = [task for task in tasks if not task.dependencies]
    looks: dict[str, list[TaskSpec]] = {source.id: [] for source in sources}
    for number in range(count):
        source = sources[number % len(sources)]
        looks[source.id].append(_another_look(source, len(looks[source.id]) + 2))
    added = [look for again in looks.values() for look in again]
    return added + [_reading_also(task, looks) for task in tasks]


def _another_look(source: TaskSpec, number: int) -> TaskSpec:
    task_id, description = f"{source.id}-{number}-again", f"{source.description} (independent look {number})"
    return source.model_copy(update={"id": task_id, "description": description})


def _reading_also(task: TaskSpec, looks: Mapping[str, Sequence[TaskSpec]]) -> TaskSpec:
    """The task, which now also depends on the copies of its dependencies."""
    needs: list[str] = []
    for need in task.dependencies:
        needs.append(need)
        needs += [look.id for look in looks.get(need, ())]
    return task.model_copy(update={"dependencies": tuple(needs)})


def _focus(text: str) -> str:
    """The text after the colon of the request, which tells a worker what matters."""
    _, colon, rest = text.partition(":")
    return f": {rest.strip()}" if colon and rest.strip() else ""


def _short(stage: Stage) -> str:
    return {"gather": "research", "analyse": "analyse"}.get(stage.kind, stage.role.name)


def _new_id(words: str, tasks: Sequence[TaskSpec]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:48] or "task"
    taken = {task.id for task in tasks}
    return next(name for n in range(1, len(taken) + 2) if (name := slug if n == 1 else f"{slug}-{n}") not in taken)
