"""Brings a plan to the number of tasks that is wanted."""

from collections.abc import Mapping, Sequence

from muster_protocol.plan import TaskSpec


def with_number(tasks: list[TaskSpec], wanted: int) -> list[TaskSpec]:
    """The plan with so many tasks."""
    while len(tasks) > wanted:
        tasks = _with_one_less(tasks)
    return _with_more(tasks, wanted - len(tasks)) if len(tasks) < wanted else tasks


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
