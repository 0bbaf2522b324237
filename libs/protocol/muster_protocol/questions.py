"""What a request waits for people for, in words and as machines read it. Pure."""

from typing import Any

from muster_protocol.fold.questions import Asked
from muster_protocol.fold.state import RequestState
from muster_protocol.messages import Decision
from muster_protocol.messages.people import APPROVAL

MAX_TEXT = 200  # characters of a question: it is read on one line


def is_asking(state: RequestState) -> bool:
    """Whether nothing goes on before somebody replies."""
    is_idle = not (state.in_flight or state.ready or state.awaiting_retry)
    return state.is_held or (bool(state.open_questions) and is_idle)


def is_approval_asked(state: RequestState) -> bool:
    return any(asked.question.cause == APPROVAL for asked in state.questions.values())


def question_of(state: RequestState, task_id: str) -> Asked | None:
    """The open question of a task."""
    found = (state.questions[name] for name in state.open_questions)
    return next((asked for asked in found if asked.question.task_id == task_id), None)


def waits_for_reply(asked: Asked, now: float) -> str:
    """Who is to say what, until when, and what holds otherwise."""
    question = asked.question
    text = " ".join(question.text.split())
    short = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    choices = f" ({', '.join(question.choices)})" if question.choices else ""
    otherwise = f", else {question.otherwise}" if question.otherwise else ""
    return f"{short}{choices}: {question.who} may reply for another {_span(question.until - now)}{otherwise}"


def questions_as_json(state: RequestState) -> list[dict[str, Any]]:
    """Every question, in the order in which they were asked, with the decision that stands."""
    return [
        {
            **asked.question.model_dump(mode="json"),
            "asked_at": asked.asked_at,
            "ended_at": asked.ended_at,
            "is_open": asked.decision is None,
            "decision": None if asked.decision is None else decision_as_json(asked.decision),
        }
        for asked in state.questions.values()
    ]


def decision_as_json(decision: Decision) -> dict[str, Any]:
    """What was decided; the plan that somebody wrote stands as the request's plan."""
    fields = {"decision", "choice", "value", "by", "reason", "said_at"}
    if decision.task_id is not None:
        fields = fields - {"choice", "value"} | {"task_id", "attempt", "role", "worker"}
    return decision.model_dump(mode="json", include=fields)


def words_of(decision: Decision) -> str:
    """What was said, by whom and why, on one line."""
    what = f"{decision.decision} {decision.choice}".rstrip()
    if decision.task_id is not None:
        to = f"worker {decision.worker}" if decision.worker else decision.role
        what = f"{decision.decision} {decision.task_id}{f' to {to}' if to else ''}"
    because = f": {decision.reason}" if decision.reason else ""
    return f"{what} by {decision.by}{because}"


def _span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
