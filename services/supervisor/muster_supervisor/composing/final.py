"""The answer as it is written: what the log says, the text that was made of it, and what only its owner knows. Pure."""

from dataclasses import dataclass, field

from muster_protocol.fold import RequestState
from muster_protocol.fold.growth import growth_notes, replaced
from muster_protocol.messages import Answer, AnswerStatus, Usage
from muster_protocol.status_words import TaskStatus
from muster_supervisor.composing.merge import Draft, gaps
from muster_supervisor.decide import GiveAnswer, status_of

MAX_GAPS, MAX_REASON = 1000, 200  # what is left of the reasons in an answer that was too long; the log has them all


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an answer says that stands in no entry of the log."""

    seconds: float
    trace_id: str
    request_hash: str
    model: str = ""
    spent: Usage = field(default_factory=Usage)  # on what is in no log entry
    conflicts: int = 0


def final_answer(state: RequestState, step: GiveAnswer, draft: Draft, around: Circumstances) -> Answer:
    """The answer as the log stands now."""
    outcomes = state.outcomes()
    done = sum(outcome.status is TaskStatus.DONE for outcome in outcomes)
    missing = gaps(state)
    if draft.is_cut:
        missing = tuple(gap[:MAX_REASON] for gap in missing[:MAX_GAPS])
        outcomes = tuple(row.model_copy(update={"reason": row.reason and row.reason[:MAX_REASON]}) for row in outcomes)
        missing += tuple(f"{task_id} is done, but its output is too long" for task_id in draft.left_out[:MAX_GAPS])
    parts = draft.findings.confidence(done, len(outcomes) - len(replaced(state))) if outcomes else None
    status = step.status if step.status is AnswerStatus.CANCELLED else status_of(state)
    cause = step.cause or (_error_class_of_tasks(state) if status is AnswerStatus.FAILED else "")
    if draft.misfits:
        missing += tuple(f"the answer does not fit answer_schema: {mistake}" for mistake in draft.misfits)
        if status is AnswerStatus.DONE:
            status, cause = AnswerStatus.PARTIAL, "bad_output"
    return Answer(
        request_id=state.request_id,
        status=status,
        text=draft.text if state.plan_entry is not None else step.reason,
        output=draft.output,
        tasks=outcomes,
        reason=step.reason,
        error_class=cause,
        growth=growth_notes(state),
        gaps=(step.reason, *missing) if step.reason else missing,
        contradictions=draft.findings.contradictions,
        unsupported=draft.findings.unsupported,
        sources=draft.findings.sources,
        confidence=parts.product if parts is not None else None,
        confidence_parts=parts,
        usage=state.usage + draft.usage + around.spent,
        seconds=round(around.seconds, 3),
        sequential_seconds=round(sum(outcome.seconds for outcome in outcomes), 3),
        trace_id=around.trace_id,
        model=around.model,
        request_hash=around.request_hash,
        conflicts=around.conflicts,
        selected=draft.selected,
    )


def _error_class_of_tasks(state: RequestState) -> str:
    """The class of the first failure that ended a task: why a request failed that nothing else ended."""
    for task in state.tasks.values():
        error = task.result.error if task.result is not None else task.refused
        if error is not None:
            return error.error_class
    return "logic"
