"""The text of an answer with a model: several outputs united, too long ones condensed first."""

from dataclasses import replace

from muster_agent.models.port import Ask, ComposeBrief, Model, as_text, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_protocol.fold import RequestState, TaskState
from muster_protocol.messages import Usage
from muster_supervisor.composing.merge import Draft, gaps, merge, output_of, parts

CHUNK_CHARACTERS = 100_000  # what one reduce step shows the model at once

CONDENSE = "Condense these parts; keep every fact, number and source."
MAX_ASKED = 2_000  # characters of what a task was asked


async def compose(state: RequestState, model: Model, reason: str) -> Draft:
    """The outputs united by the model; the plain merge if there is no model, or fewer than two outputs."""
    plain = merge(state, reason)
    if not model.is_llm or len(plain.made_of) < 2 or state.plan_entry is None:
        return plain
    plan = state.plan_entry.plan
    texts: dict[str, str] = {}
    asked: dict[str, str] = {}
    for task_id, task in parts(state).items():
        name = task.spec.name if task.spec.name not in texts else task_id
        texts[name], asked[name] = as_text(output_of(task)), _asked(task)
    usage = Usage()
    while plan.aggregation == "reduce" and sum(map(len, texts.values())) > CHUNK_CHARACTERS and len(texts) > 1:
        reduced: dict[str, str] = {}
        for number, chunk in enumerate(_chunks(texts), 1):
            brief = ComposeBrief(plan.goal, chunk, CONDENSE, request=state.plan_entry.text, asked=asked)
            reply = require_complete(await ask_with_retry(model, Ask(brief)))
            usage += reply.usage
            reduced[f"part-{number}"] = reply.text
        if len(reduced) >= len(texts):
            break
        texts = reduced
    brief = ComposeBrief(
        plan.goal, texts, plan.final_instruction, gaps(state), request=state.plan_entry.text, asked=asked
    )
    reply = require_complete(await ask_with_retry(model, Ask(brief)))
    return replace(plain, text=reply.text, usage=usage + reply.usage, is_composed=True)


def _asked(task: TaskState) -> str:
    """What a task was asked, and who did it."""
    who = f"done by {task.result.role}: " if task.result is not None and task.result.role else ""
    text = task.description
    return who + (text if len(text) <= MAX_ASKED else f"{text[: MAX_ASKED - 1]}…")


def _chunks(texts: dict[str, str]) -> list[dict[str, str]]:
    """The texts in groups that one condensing step can take."""
    chunks: list[dict[str, str]] = [{}]
    size = 0
    for name, text in texts.items():
        if size and size + len(text) > CHUNK_CHARACTERS:
            chunks.append({})
            size = 0
        chunks[-1][name] = text
        size += len(text)
    return chunks
