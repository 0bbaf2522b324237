"""What the prompts by which a plan grows have in common: the request, what came of its tasks, and what is left."""

import json
from collections.abc import Iterator

from muster_agent.models.prompts.boundary import Boundary
from muster_agent.models.prompts.plan import role_line
from muster_agent.models.prompts.text import text_of
from muster_agent.models.standing import Standing, TaskShown
from muster_protocol.counted import counted
from muster_protocol.messages import Output

MAX_OUTPUT, MIN_OUTPUT = 6_000, 400  # characters of one output: two pages, or a paragraph where there are many
MAX_OUTPUTS = 90_000  # characters of all of them: some 30,000 tokens
MAX_DESCRIPTION, MAX_REASON, MAX_NAMED = 1_500, 600, 10
_END = 3  # a third of what is shown of a long output is its end: there it says what it could not find


def blanks_of(standing: Standing, data: Boundary) -> dict[str, str]:
    """What the blanks of such a prompt stand for, but for those that only one of them has."""
    room = standing.room
    return {
        "persona": standing.persona.strip(),
        "roles": "\n".join(role_line(role, is_away=role.name in standing.away) for role in standing.roles),
        "guidelines": standing.guidelines.strip(),
        "more_tasks": text_of("more_tasks"),
        "data_rule": data.rule,
        "request": data.request(standing.text),
        "goal": standing.goal if standing.goal != standing.text else "",
        "notes": "\n".join(data.request(note) for note in standing.notes),
        "today": standing.today,
        "tasks": "\n\n".join(_tasks(standing.tasks, data)),
        "not_shown": standing.not_shown,
        "room_tasks": counted(room.tasks, "task"),
        "tokens": "" if room.tokens is None else f"{room.tokens:,}",
        "usd": "" if room.usd is None else f"{room.usd:.4g}",
        "seconds": "" if room.seconds is None else f"{room.seconds:,.0f}",
    }


def mended(draft: str, mistakes: tuple[str, ...], data: Boundary) -> str:
    """The turn in which a refused reply is mended; nothing where none was refused."""
    if not mistakes:
        return ""
    listed = "\n".join(f"- {mistake}" for mistake in mistakes)
    return text_of("mend_verdict", draft=data("refused reply", draft), mistakes=listed)


def _tasks(tasks: tuple[TaskShown, ...], data: Boundary) -> Iterator[str]:
    """Each task with what was asked, and what came of it."""
    done = sum(task.status == "done" for task in tasks)
    most = max(MIN_OUTPUT, min(MAX_OUTPUT, MAX_OUTPUTS // max(1, done)))
    for task in tasks:
        name, asked = task.spec.id, task.description or task.spec.description
        yield data(f"task {name}", f"{_about(task)}\n{cut(asked, MAX_DESCRIPTION)}")
        if task.status == "done":
            yield data(f"output of {name}", cut(_text(task.output), most))
        elif task.reason:
            yield data(f"why {name} is not done", cut(task.reason, MAX_REASON))


def _about(task: TaskShown) -> str:
    """How a task stands, in a line."""
    said = [f"{task.status} by {task.role}" if task.role and task.status == "done" else task.status]
    said += [f"given to {task.role}"] if task.role and task.status != "done" else []
    said += [f"after {counted(task.attempts, 'attempt')}"] if task.attempts > 1 or task.status == "failed" else []
    if needs := task.spec.dependencies:
        said.append(f"reads {', '.join(needs[:MAX_NAMED])}{', …' if len(needs) > MAX_NAMED else ''}")
    return f"[{'; '.join(said)}]"


def cut(text: str, most: int) -> str:
    """A text without its middle, if it is too long."""
    if len(text) <= most:
        return text
    end = most // _END
    left_out = f"\n[… {len(text) - most:,} characters are left out here …]\n"
    return f"{text[: most - end]}{left_out}{text[len(text) - end :]}"


def _text(output: Output) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
