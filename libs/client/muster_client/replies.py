"""Replies to what a request asks people, and waits until its owner has taken the reply in.

A reply is kept as soon as it is stored on `control`. That is not yet a decision: another reply may have come first, and
a plan with mistakes is refused. The owner writes into the log which of the three it is.
"""

import asyncio
import secrets
from typing import Any, TypedDict

from muster_bus.connection import Bus
from muster_bus.log import RequestLog
from muster_protocol.errors import Invalid, Terminal
from muster_protocol.fold import RequestState
from muster_protocol.fold.questions import Asked
from muster_protocol.messages import Decision, Reply
from muster_protocol.plan import Plan
from muster_protocol.questions import words_of

GIVE_UP_AFTER_SECONDS = 30.0
TAKEN_IN_SECONDS = 5.0  # by an owner that lives; without one the reply is kept
LOOK_SECONDS = 1.0


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
        origin = bus.origin(reply.request_id, nonce=secrets.token_hex(4))
        stored = await bus.store(reply, origin, give_up_after=GIVE_UP_AFTER_SECONDS)
        return await _taken_in(known, reply.question, stored.sequence, within)
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


async def _taken_in(known: RequestLog, question: str, sequence: int, within: float) -> Decision | None:
    """What the owner makes of the message at this place on `control`."""
    try:
        async with asyncio.timeout(within):
            while (found := _outcome(known.state, question, sequence)) is None:
                if not await known.changed(LOOK_SECONDS):
                    await known.refresh()
            return found
    except TimeoutError:
        return None


def raise_refused(state: RequestState, sequence: int) -> None:
    """Raise with the reason, if the owner refused the message at this place on `control`."""
    refused = next((one for one in state.refusals if one.control_sequence == sequence), None)
    if refused is not None:
        where, _, reason = refused.reason.partition(": ")
        is_field = bool(reason) and " " not in where
        raise Invalid(reason if is_field else refused.reason, where if is_field else "")


def _outcome(state: RequestState, question: str, sequence: int) -> Decision | None:
    raise_refused(state, sequence)
    decision = state.questions[question].decision
    if decision is not None and decision.control_sequence != sequence:
        raise Settled(decision)
    return decision
