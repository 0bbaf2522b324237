"""From results to the answer's text: merge, select or reduce, with gaps named and a merge that needs no model."""

from dataclasses import dataclass, field

from muster_agent.models.port import Ask, ComposeBrief, Model, as_text, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_protocol.fold import RequestState, TaskState, TaskStatus
from muster_protocol.messages import Output, Usage

CHUNK_CHARACTERS = 100_000  # what one reduce step shows the model at once
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
    """The finished tasks whose result no other finished task has taken in: what the answer is made of."""
    return {
        task_id: task
        for task_id, task in state.tasks.items()
        if task.status is TaskStatus.DONE
        and not any(state.tasks[other].status is TaskStatus.DONE for other in task.dependents)
    }


def gaps(state: RequestState) -> tuple[str, ...]:
    """What is missing, each with its reason."""
    return tuple(
        f"{task_id} {_word(task)}" + (f": {task.reason}" if task.reason else "")
        for task_id, task in state.tasks.items()
        if task.status is not TaskStatus.DONE
    )


def merge(state: RequestState, reason: str) -> Draft:
    """Put the outputs one after the other; always possible, and the same every time."""
    found = final_tasks(state)
    if state.plan_entry is not None and state.plan_entry.plan.aggregation == "select":
        found = dict(list(found.items())[:1])
    outputs = {task_id: _output(task) for task_id, task in found.items()}
    made_of = frozenset(found)
    if not outputs:
        return Draft(_nothing(state, reason), None, made_of)
    if len(outputs) == 1:
        ((_, output),) = outputs.items()
        return Draft(as_text(output), output, made_of)
    text = "\n\n".join(f"## {task_id}\n\n{as_text(output)}" for task_id, output in outputs.items())
    return Draft(text, outputs, made_of)


async def compose(state: RequestState, model: Model, reason: str) -> Draft:
    """The answer's text: synthesised by the model where there is one and several outputs to unite."""
    plain = merge(state, reason)
    if not model.is_llm or len(plain.made_of) < 2 or state.plan_entry is None:
        return plain
    plan = state.plan_entry.plan
    texts = {task_id: as_text(_output(task)) for task_id, task in final_tasks(state).items()}
    usage = Usage()
    while plan.aggregation == "reduce" and sum(map(len, texts.values())) > CHUNK_CHARACTERS and len(texts) > 1:
        reduced: dict[str, str] = {}
        for number, chunk in enumerate(_chunks(texts), 1):
            brief = ComposeBrief(plan.goal, chunk, "Condense these parts; keep every fact and number.", ())
            reply = require_complete(await ask_with_retry(model, Ask(brief)))
            usage += reply.usage
            reduced[f"part-{number}"] = reply.text
        if len(reduced) >= len(texts):
            break
        texts = reduced
    brief = ComposeBrief(plan.goal, texts, plan.final_instruction, gaps(state))
    reply = require_complete(await ask_with_retry(model, Ask(brief)))
    return Draft(reply.text, plain.output, plain.made_of, usage + reply.usage)


def cut(draft: Draft, reason: str) -> Draft:
    """As much as one message can carry; every output is in the log."""
    text = f"{draft.text[:CUT_CHARACTERS]}\n\n… cut here, see the results of the tasks: {reason}"
    return Draft(text, None, draft.made_of, draft.usage, is_cut=True)


def _output(task: TaskState) -> Output:
    return task.result.output if task.result else None


def _word(task: TaskState) -> str:
    return {
        TaskStatus.FAILED: "failed",
        TaskStatus.SKIPPED: "was skipped",
        TaskStatus.RUNNING: "was still running",
    }.get(task.status, "was to be tried again" if task.attempts else "was not started")


def _nothing(state: RequestState, reason: str) -> str:
    """Why there is no text: the reason of the end, and the first task that explains it."""
    failed = next((task for task in state.tasks.values() if task.status is TaskStatus.FAILED), None)
    because = f"{failed.spec.id} failed after {len(failed.attempts)} attempts: {failed.reason}" if failed else ""
    return "No task finished. " + "; ".join(part for part in (reason, because) if part)


def _chunks(texts: dict[str, str]) -> list[dict[str, str]]:
    chunks: list[dict[str, str]] = [{}]
    size = 0
    for name, text in texts.items():
        if size and size + len(text) > CHUNK_CHARACTERS:
            chunks.append({})
            size = 0
        chunks[-1][name] = text
        size += len(text)
    return chunks
