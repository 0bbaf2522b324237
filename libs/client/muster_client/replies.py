"""Replies to what a request asks people, and waits until its owner has taken the reply in.

A reply is kept as soon as it is stored on `control`. That is not yet a decision: another reply may have come first, and
a plan with mistakes is refused. The owner writes into the log which of the three it is.
"""

from typing import Any, TypedDict

from muster_bus.connection import Bus
from muster_bus.log import RequestLog
from muster_client.saying import TAKEN_IN_SECONDS, raise_refused, say, taken_in
from muster_protocol.errors import Invalid, Terminal
from muster_protocol.fold import RequestState
from muster_protocol.fold.questions import Asked
from muster_protocol.messages import Decision, Reply
from muster_protocol.plan import Plan
from muster_protocol.questions import words_of


class ReplyFields(TypedDict, total=False):
    """What may be said beside the choice."""

    question: str  # the one that is open, if absent
    value: Any
    plan: Plan | dict[str, Any] | None
    reason: str


class NotAsked(Invalid):
    """The request does not ask that, or asks nothing."""


class Settled(Terminal):
    """There is a decision already. `decision` is the one that stands."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"it was settled before: {words_of(decision)}")
        self.decision = decision


async def reply_to(bus: Bus, reply: Reply, within: float = TAKEN_IN_SECONDS) -> Decision | None:
    """Send a reply; the decision that it became. None: nobody has taken it in yet, and it is kept.

    Raises NotAsked, Settled, and Invalid with all that is wrong with it.
    """
    known = RequestLog(bus, reply.request_id)
    await known.open()
    try:
        await known.refresh()
        asked = question_for(known.state, reply.question)
        if asked.decision is not None:
            raise Settled(asked.decision)
        sequence = await say(bus, reply)
        return await taken_in(known, lambda state: _outcome(state, reply.question, sequence), within)
    finally:
        await known.close()


def question_for(state: RequestState, name: str) -> Asked:
    """The question with this id; without a name the one that is open, else the last one."""
    if name in state.questions:
        return state.questions[name]
    if name or not state.questions:
        what = f"question {name!r}" if name else "anything"
        raise NotAsked(f"{state.request_id} has not asked {what}", "question")
    open_ones = list(state.open_questions)
    if len(open_ones) > 1:
        raise NotAsked(f"{state.request_id} asks several: {', '.join(open_ones)}; say which", "question")
    return state.questions[open_ones[0] if open_ones else list(state.questions)[-1]]


def _outcome(state: RequestState, question: str, sequence: int) -> Decision | None:
    raise_refused(state, sequence)
    decision = state.questions[question].decision
    if decision is not None and decision.control_sequence != sequence:
        raise Settled(decision)
    return decision
