"""Asks a model by what the plan is to grow: the review after a round, and what takes the place of a failed task.

A model that fails, says nothing that can be used or is not worth its cost ends the cause as a refusal with the reason:
the request is answered with what there is.
"""

import asyncio
import logging

from muster_agent.models.standing import ReplaceBrief, ReviewBrief
from muster_protocol.errors import MusterError, error_class_of
from muster_protocol.fold import pending_growth
from muster_protocol.fold.budget import left_for
from muster_protocol.messages import Extended
from muster_protocol.messages.growth import REVIEW, kind_of
from muster_supervisor.composing.check import look_for
from muster_supervisor.decide import Grow
from muster_supervisor.owner import LeaseLost, Owner, Superseded
from muster_supervisor.planning.asking import verdict_of
from muster_supervisor.planning.growing import refused
from muster_supervisor.planning.standing import replace_brief, review_brief, room_of
from muster_supervisor.planning.verdict import read_verdict
from muster_supervisor.spans import grow_span
from muster_supervisor.spending import Paying, paying
from muster_supervisor.steps.grow import RETRY_SECONDS, record_growth
from muster_supervisor.steps.seen import seen_now
from muster_supervisor.steps.wanted import Unwanted, while_wanted

log = logging.getLogger("muster.supervisor")

CALL_SECONDS = 90.0  # for both turns; a model that takes longer is not waited for
PART = 0.5  # of the time that is left: the rest is for what comes of it
LEAST_SECONDS = 10.0  # with less left, a model's verdict and the work that it asks for would not come to an end


def start_review(owner: Owner, step: Grow) -> None:
    """Ask in the background: a slow model must delay neither other tasks nor a cancel."""
    owner.growing.add(step.cause)
    owner.in_background(lambda: _review(owner, step.cause))


async def _review(owner: Owner, cause: str) -> None:
    try:
        with grow_span(owner, cause) as span:
            extended = await _extended(owner, cause)
            while extended is not None and not await record_growth(owner, span, extended):
                await asyncio.sleep(RETRY_SECONDS)
                if owner.seconds_left() <= 0:
                    return
    finally:
        owner.growing.discard(cause)
        owner.log.wake()


async def _extended(owner: Owner, cause: str) -> Extended | None:
    """What is to be recorded for a cause, with what it did cost; None: nothing was asked, and nothing is to be."""
    model = paying(owner, cause)
    try:
        extended = await while_wanted(owner, _asked(owner, cause, model))
    except (LeaseLost, Superseded):
        raise
    except Unwanted:
        extended = refused(cause, "cancelled", "the request is being ended")  # what it did cost by now is paid
    except TimeoutError:
        extended = refused(cause, "timeout", f"{model.name} has not said in time what else is to be done")
    except MusterError as error:
        extended = refused(cause, error_class_of(error), str(error))
    except Exception as error:
        log.exception("… request %s: asking for %s failed", owner.request_id, cause)
        extended = refused(cause, error_class_of(error), repr(error))
    return None if extended is None else extended.model_copy(update={"usage": model.usage})


async def _asked(owner: Owner, cause: str, model: Paying) -> Extended | None:
    if why := _why_not(owner, cause, model):
        return refused(cause, *why)
    seconds, team = owner.seconds_left() * PART, owner.resources.team
    async with asyncio.timeout(seconds), owner.model_slot(), asyncio.timeout(CALL_SECONDS):
        brief = await _brief(owner, cause, seconds)
        if brief is None:
            return None
        left = left_for(owner.state, cause)
        verdict = await verdict_of(brief, model, left, lambda text: read_verdict(text, owner.state, cause, team))
    return Extended(cause=cause, add=verdict.add, drop=verdict.drop, reason=verdict.reason)


def _why_not(owner: Owner, cause: str, model: Paying) -> tuple[str, str] | None:
    """Why nobody is asked: the class of it and the reason."""
    left, room = owner.seconds_left(), room_of(owner.state)
    if model.is_llm and left < LEAST_SECONDS:
        few = f"{left:.1f} s are left, too few for more work"
        return "timeout", f"{few}; a look at the results takes {LEAST_SECONDS:g} s"
    if room.tasks == 0 and kind_of(cause) == REVIEW:
        return "budget", "the plan has as many tasks as it may have: see limits.tasks and budget.tasks"
    return None


async def _brief(owner: Owner, cause: str, seconds: float) -> ReviewBrief | ReplaceBrief | None:
    """What the model is asked; None: there is nothing to ask any more."""
    seen = await seen_now(owner)
    if kind_of(cause) == REVIEW:
        found = await look_for(owner.state, seconds)
        brief = review_brief(owner.state, owner.resources.team, seen, found.contradictions)
        return brief if cause in pending_growth(owner.state) else None
    failed = owner.state.growing.get(cause)
    return None if failed is None else replace_brief(owner.state, owner.resources.team, seen, failed)
