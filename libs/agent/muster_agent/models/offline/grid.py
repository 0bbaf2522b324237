"""A grid: each stage of work for each subject, then one comparison, then the last stage for everything."""

import re
from collections.abc import Sequence

from muster_agent.models.offline.fit import VERBS, Stage
from muster_protocol.plan import TaskSpec


def by_subject(text: str, named: Sequence[str], stages: Sequence[Stage]) -> list[TaskSpec]:
    """Every stage but the last for each subject, then one comparison of all, then the last stage for everything."""
    *middle, last = stages
    focus = _focus(text)
    tasks: list[TaskSpec] = []
    previous: dict[str, tuple[str, ...]] = dict.fromkeys(named, ())
    for stage in middle:
        for subject in named:
            task = TaskSpec(
                id=new_id(f"{short(stage)}-{subject}", tasks),
                description=f"{VERBS[stage.kind]} {subject}{focus}",
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
            id=new_id("compare", tasks),
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


def _closing(text: str, last: Stage, needs: tuple[str, ...], tasks: list[TaskSpec]) -> TaskSpec:
    return TaskSpec(
        id=new_id("report" if last.kind == "write" else short(last), tasks),
        description=f"{VERBS[last.kind]} the answer to: {text}",
        tag=last.role.name,
        dependencies=needs,
        expected_output="a complete answer in Markdown",
    )


def _focus(text: str) -> str:
    """The text after the colon of the request, which tells a worker what matters."""
    _, colon, rest = text.partition(":")
    return f": {rest.strip()}" if colon and rest.strip() else ""


def short(stage: Stage) -> str:
    return {"gather": "research", "analyse": "analyse"}.get(stage.kind, stage.role.name)


def new_id(words: str, tasks: Sequence[TaskSpec]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:48] or "task"
    taken = {task.id for task in tasks}
    return next(name for n in range(1, len(taken) + 2) if (name := slug if n == 1 else f"{slug}-{n}") not in taken)
