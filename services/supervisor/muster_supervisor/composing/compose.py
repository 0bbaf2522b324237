"""The text of an answer with a model: several outputs united, too long ones condensed first."""

from dataclasses import replace

from muster_agent.models.port import Ask, ComposeBrief, Model, as_text, require_complete
from muster_agent.models.retry import ask_with_retry
from muster_protocol.fold import RequestState
from muster_protocol.messages import Usage
from muster_supervisor.checking.findings import NOTHING_FOUND, Findings
from muster_supervisor.composing.merge import Draft, gaps, merge, output_of, parts

CHUNK_CHARACTERS = 100_000  # what one reduce step shows the model at once


async def compose(state: RequestState, model: Model, reason: str, findings: Findings = NOTHING_FOUND) -> Draft:
    """The outputs united by the model; the plain merge if there is no model, or fewer than two outputs."""
    plain = merge(state, reason)
    if not model.is_llm or len(plain.made_of) < 2 or state.plan_entry is None:
        return plain
    plan = state.plan_entry.plan
    texts: dict[str, str] = {}
    for task_id, task in parts(state).items():
        texts[task.spec.name if task.spec.name not in texts else task_id] = as_text(output_of(task))
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
    brief = ComposeBrief(plan.goal, texts, plan.final_instruction, gaps(state), findings.contradictions)
    reply = require_complete(await ask_with_retry(model, Ask(brief)))
    return replace(plain, text=reply.text, usage=usage + reply.usage, is_composed=True, findings=findings)


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
