"""The text of an answer with a model: outputs united, too long ones condensed first, one of several picked, JSON made.

Which of these is needed says the plan's aggregation, what is done, and the schema that the answer is to fit.
"""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from muster_agent.errors import BadOutput
from muster_agent.models.port import Ask, ComposeBrief, JudgeBrief, Model, ReduceBrief, as_text, require_complete
from muster_agent.models.prompts.draft import Choice
from muster_agent.models.retry import ask_with_retry
from muster_protocol.fold import RequestState, TaskState
from muster_protocol.messages import PlanRecorded, Selected, Usage
from muster_supervisor.checking.findings import NOTHING_FOUND, Findings
from muster_supervisor.composing.fit import fitted, mistakes_of
from muster_supervisor.composing.merge import Draft, candidates, gaps, merge, parts, picked

CHUNK_CHARACTERS = 100_000  # what one reduce step shows the model at once
CHUNK_OUTPUTS = 50  # more in one call, and a model forgets some
LEAST_SHORTER = 0.9  # of the length before: a round that shortens less than that is the last
MAX_ASKED = 2_000  # characters of what a task was asked
MAX_REASON = 500  # characters of what a judge says


def needs_model(state: RequestState, plain: Draft) -> bool:
    """Whether there is something for a model to do; otherwise the plain merge is the answer."""
    if state.plan_entry is None or not plain.made_of:
        return False
    if state.plan_entry.plan.aggregation == "select":
        return len(candidates(state)) > 1 or _misfits(state, plain)
    is_one_with_gaps = not plain.is_one_answer and bool(gaps(state))
    return len(plain.made_of) > 1 or is_one_with_gaps or _misfits(state, plain)


async def compose(state: RequestState, model: Model, reason: str, findings: Findings = NOTHING_FOUND) -> Draft:
    """The answer that the model makes of the outputs; the plain merge if it is not needed, or there is no model."""
    plain = merge(state, reason)
    if not model.is_llm or state.plan_entry is None or not needs_model(state, plain):
        return plain
    plain = replace(plain, findings=findings)
    if state.plan_entry.plan.aggregation != "select":
        return await _united(state, model, plain, parts(state))
    selected = await _selected(state, model, plain) if len(candidates(state)) > 1 else plain
    if not _misfits(state, selected):
        return selected
    return await _united(state, model, selected, picked(state, selected.selected))


async def _united(state: RequestState, model: Model, plain: Draft, found: Mapping[str, TaskState]) -> Draft:
    """One answer of several outputs; one that does not fit its schema goes back to the model once."""
    entry = state.plan_entry
    assert entry is not None
    texts, usage = _texts(found), plain.usage
    asked = {name: _asked(task) for name, task in zip(texts, found.values(), strict=True)}
    if entry.plan.aggregation == "reduce":
        texts, spent = await _reduced(entry, texts, model)
        usage += spent
    brief = ComposeBrief(
        entry.plan.goal,
        texts,
        entry.plan.final_instruction,
        gaps(state),
        plain.findings.contradictions,
        schema=entry.answer_schema,
        request=entry.text,
        notes=tuple(note.reason for note in state.notes),
        asked=asked,
    )
    reply = require_complete(await ask_with_retry(model, Ask(brief)))
    usage += reply.usage
    if entry.answer_schema is not None and (mistakes := mistakes_of(reply.text, entry.answer_schema)):
        again = replace(brief, draft=reply.text, mistakes=tuple(mistakes))
        reply = require_complete(await ask_with_retry(model, Ask(again)))
        usage += reply.usage
    return replace(plain, text=reply.text, usage=usage, is_composed=True)


async def _selected(state: RequestState, model: Model, plain: Draft) -> Draft:
    """The output that a judge picks; a choice that is none is an error, and the stated rule holds."""
    entry = state.plan_entry
    assert entry is not None
    found = candidates(state)
    texts, plan = _texts(found), entry.plan
    brief = JudgeBrief(plan.goal, texts, plan.final_instruction, plain.findings.contradictions, entry.text)
    reply = require_complete(await ask_with_retry(model, Ask(brief)))
    try:
        choice = Choice.model_validate_json(reply.text)
        task_id = list(found)[list(texts).index(choice.best)]
    except (ValidationError, ValueError):
        raise BadOutput(f"the judge picked none of {', '.join(texts)}: {reply.text[:200]!r}") from None
    reason = f"{model.name} judged: {' '.join(choice.reason.split())[:MAX_REASON]}"
    best = merge(state, "", Selected(task_id=task_id, reason=reason))
    return replace(best, usage=plain.usage + reply.usage, findings=plain.findings)


async def _reduced(entry: PlanRecorded, texts: dict[str, str], model: Model) -> tuple[dict[str, str], Usage]:
    """The texts made shorter, round by round, until one call can take them all."""
    usage, length = Usage(), _length(texts)
    while length > CHUNK_CHARACTERS or len(texts) > CHUNK_OUTPUTS:
        reduced: dict[str, str] = {}
        for number, chunk in enumerate(_chunks(texts), 1):
            reply = require_complete(await ask_with_retry(model, Ask(ReduceBrief(entry.plan.goal, chunk, entry.text))))
            usage += reply.usage
            reduced[f"part-{number}"] = reply.text
        before, length, texts = length, _length(reduced), reduced
        if length > before * LEAST_SHORTER:
            break
    return texts, usage


def _texts(found: Mapping[str, TaskState]) -> dict[str, str]:
    """Each output under what people call its task; under its id where two have the same name."""
    texts: dict[str, str] = {}
    for task_id, task in found.items():
        texts[task.spec.name if task.spec.name not in texts else task_id] = as_text(task.output)
    return texts


def _asked(task: TaskState) -> str:
    """What a task was asked, and who did it."""
    who = f"done by {task.result.role}: " if task.result is not None and task.result.role else ""
    text = task.description
    return who + (text if len(text) <= MAX_ASKED else f"{text[: MAX_ASKED - 1]}…")


def _chunks(texts: Mapping[str, str]) -> list[dict[str, str]]:
    """The texts in groups that one condensing step can take; what is too long for one is cut into pieces."""
    chunks: list[dict[str, str]] = [{}]
    size = 0
    for name, text in texts.items():
        for begin in range(0, len(text) or 1, CHUNK_CHARACTERS):
            piece = text[begin : begin + CHUNK_CHARACTERS]
            if chunks[-1] and (size + len(piece) > CHUNK_CHARACTERS or len(chunks[-1]) == CHUNK_OUTPUTS):
                chunks.append({})
                size = 0
            chunks[-1][f"{name} (from character {begin:,})" if begin else name] = piece
            size += len(piece)
    return chunks


def _length(texts: Mapping[str, str]) -> int:
    return sum(map(len, texts.values()))


def _misfits(state: RequestState, draft: Draft) -> bool:
    schema = state.plan_entry.answer_schema if state.plan_entry is not None else None
    return schema is not None and bool(fitted(draft, schema).misfits)
