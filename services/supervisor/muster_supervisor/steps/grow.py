"""Records by what the plan grows, once for each cause."""

import logging

from opentelemetry.trace import Span

from muster_protocol.counted import counted
from muster_protocol.errors import Invalid, Retryable
from muster_protocol.messages import Extended
from muster_supervisor.decide import Grow
from muster_supervisor.owner import Owner
from muster_supervisor.planning.growing import grown, refused
from muster_supervisor.spans import grow_span, shown_growth

log = logging.getLogger("muster.supervisor")

RETRY_SECONDS = 1.0  # before a growth is stored again that the object store did not take


async def grow(owner: Owner, step: Grow) -> None:
    """Find out what a cause comes to and record it."""
    if step.cause not in owner.state.growing:
        return  # a late success came while another cause was recorded
    with grow_span(owner, step.cause) as span:
        extended = grown(owner.state, step.cause, owner.resources.team)
        if not await record_growth(owner, span, extended):
            await owner.log.changed(min(RETRY_SECONDS, owner.seconds_left()))


async def record_growth(owner: Owner, span: Span | None, extended: Extended) -> bool:
    """Write it; what is too large is refused. False: it could not be stored and is to be tried again in a moment."""
    try:
        await owner.append(extended)
    except Invalid as reason:
        extended = refused(extended.cause, "bad_output", f"it cannot be stored: {reason}", extended.usage)
        await owner.append(extended)
    except Retryable as reason:
        log.warning("… request %s: its plan has not grown yet: %s", owner.request_id, reason)
        return False
    shown_growth(span, extended)
    _log_grown(owner, extended)
    return True


def _log_grown(owner: Owner, extended: Extended) -> None:
    if extended.refused is not None:
        log.warning("✗ plan    %s  %s refused: %s", owner.request_id, extended.cause, extended.refused.message)
    else:
        more, why = counted(len(extended.add), "task"), f": {extended.reason}" if extended.reason else ""
        log.info("☰ plan    %s  %s: %s more%s", owner.request_id, extended.cause, more, why)
