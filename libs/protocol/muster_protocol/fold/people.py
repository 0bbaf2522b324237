"""What questions and decisions mean: which reply counts, what becomes of a plan that waits for approval.

The first decision of a question counts, or its default; what is said after its limit is no reply. While a question is
open the deadline moves: see `RequestState.deadline`.
"""

from muster_protocol.fold.moves import move_ends
from muster_protocol.fold.orders import carry_out
from muster_protocol.fold.plans import lay_out, release
from muster_protocol.fold.questions import Asked, paused_seconds
from muster_protocol.fold.state import Entry, RequestState
from muster_protocol.messages import Decision, Question
from muster_protocol.messages.people import APPROVAL, APPROVE, EDIT, MAX_NOTES
from muster_protocol.plan import is_acyclic

MAX_REFUSALS = 5  # replies that are remembered for whoever sent them
MAX_ORDERS = 20


def ask(state: RequestState, entry: Entry, body: Question) -> None:
    """Open a question, once."""
    if body.id not in state.questions:
        state.questions[body.id] = Asked(body, entry.time)
        state.open_questions[body.id] = None
        _move_deadline(state)


def decide(state: RequestState, entry: Entry, body: Decision) -> None:
    """Take in what a person said."""
    is_repeated = 0 < body.control_sequence <= state.controls_seen
    state.controls_seen = max(state.controls_seen, body.control_sequence)
    match body.decision:
        case "cancel":
            state.cancelled = state.cancelled or body
        case "note":
            state.notes = (*state.notes, body)[-MAX_NOTES:]
        case "reply" | "default":
            _settle(state, entry, body)
        case "retry" | "reassign":
            if fault := carry_out(state, body, is_repeated=is_repeated):
                _refuse(state, body.model_copy(update={"decision": "refused", "reason": fault}))
            else:
                state.orders = (*state.orders, body)[-MAX_ORDERS:]
        case "refused":
            _refuse(state, body)


def _refuse(state: RequestState, body: Decision) -> None:
    state.refused_replies += 1
    state.refusals = (*state.refusals, body)[-MAX_REFUSALS:]


def why_cancelled(decision: Decision) -> str:
    """Who or what ended a request, in words."""
    because = f": {decision.reason}" if decision.reason else ""
    if decision.decision == "default":
        return "nobody approved the plan in time"
    if decision.decision == "reply":
        return f"the plan was rejected by {decision.by}{because}"
    return decision.reason or f"cancelled by {decision.by}"


def _settle(state: RequestState, entry: Entry, body: Decision) -> None:
    asked = state.questions.get(body.question)
    if asked is None or asked.decision is not None or not asked.is_settled_by(body):
        return
    is_approval = asked.question.cause == APPROVAL
    if is_approval and body.choice == EDIT and (body.plan is None or not is_acyclic(body.plan)):
        return
    asked.decision = body
    asked.ended_at = max(asked.asked_at, min(entry.time, asked.question.until))
    del state.open_questions[body.question]
    _move_deadline(state)
    if is_approval and state.is_held:
        _judge_plan(state, body)


def _judge_plan(state: RequestState, body: Decision) -> None:
    """Carry out the plan, another plan, or none."""
    assert state.plan_entry is not None
    if body.choice not in (APPROVE, EDIT):
        state.cancelled = state.cancelled or body
        return
    if body.choice == EDIT and body.plan is not None:
        changed = {"plan": body.plan, "planner": body.by, "warnings": body.warnings, "same_work": ()}
        lay_out(state, state.plan_entry.model_copy(update=changed))
    release(state)


def _move_deadline(state: RequestState) -> None:
    most = state.plan_entry.person_seconds if state.plan_entry is not None else 0.0
    state.paused_seconds = paused_seconds(state.questions.values(), most)
    move_ends(state)
