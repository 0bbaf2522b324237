"""The text of an answer without a model: outputs put one after the other, and gaps named. Pure."""

from dataclasses import dataclass, field

from muster_agent.models.port import as_text
from muster_protocol.fold import RequestState, TaskState, TaskStatus
from muster_protocol.messages import Output, Usage

CUT_CHARACTERS = 100_000  # what is left of a text that is too long for one message


@dataclass(frozen=True, slots=True)
class Draft:
    """The text of an answer and what it was made of."""

    text: str
    output: Output
    made_of: frozenset[str]
    usage: Usage = field(default_factory=Usage)
    is_cut: bool = False


def final_tasks(state: RequestState) -> dict[str, TaskState]:
    """The finished tasks whose result no other finished task used: the answer is made of these."""
    return {
        task_id: task
        for task_id, task in state.tasks.items()
        if task.status is TaskStatus.DONE
        and not any(state.tasks[other].status is TaskStatus.DONE for other in task.dependents)
    }


def gaps(state: RequestState) -> tuple[str, ...]:
    """The tasks that are not done, each with its reason."""
    return tuple(
        f"{task_id} {_word(task)}" + (f": {task.reason}" if task.reason else "")
        for task_id, task in state.tasks.items()
        if task.status is not TaskStatus.DONE
    )


def merge(state: RequestState, reason: str) -> Draft:
    """The outputs one after the other: needs no model, and gives the same text every time."""
    found = final_tasks(state)
    if state.plan_entry is not None and state.plan_entry.plan.aggregation == "select":
        found = dict(list(found.items())[:1])
    outputs = {task_id: output_of(task) for task_id, task in found.items()}
    made_of = frozenset(found)
    if not outputs:
        return Draft(_nothing(state, reason), None, made_of)
    if len(outputs) == 1:
        ((_, output),) = outputs.items()
        return Draft(as_text(output), output, made_of)
    text = "\n\n".join(f"## {task_id}\n\n{as_text(output)}" for task_id, output in outputs.items())
    return Draft(text, outputs, made_of)


def cut(draft: Draft, reason: str) -> Draft:
    """The draft shortened to what one message can carry; the log still has every output."""
    text = f"{draft.text[:CUT_CHARACTERS]}\n\n… cut here, see the results of the tasks: {reason}"
    return Draft(text, None, draft.made_of, draft.usage, is_cut=True)


def output_of(task: TaskState) -> Output:
    """What a task gave; None when it has no result."""
    return task.result.output if task.result else None


def _word(task: TaskState) -> str:
    """How a task that is not done stands, in words for people."""
    return {
        TaskStatus.FAILED: "failed",
        TaskStatus.SKIPPED: "was skipped",
        TaskStatus.RUNNING: "was still running",
    }.get(task.status, "was to be tried again" if task.attempts else "was not started")


def _nothing(state: RequestState, reason: str) -> str:
    """The text when no task finished: why the request ended, and the first task that failed."""
    failed = next((task for task in state.tasks.values() if task.status is TaskStatus.FAILED), None)
    because = f"{failed.spec.id} failed after {len(failed.attempts)} attempts: {failed.reason}" if failed else ""
    return "No task finished. " + "; ".join(part for part in (reason, because) if part)
