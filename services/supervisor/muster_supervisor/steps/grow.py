"""Records by what the plan grows, once for each cause."""

import logging

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
    """Find out what a cause comes to and record it; what is too large to be recorded is refused."""
    if step.cause not in owner.state.growing:
        return  # a late success came while another cause was recorded
    with grow_span(owner, step.cause) as span:
        extended = grown(owner.state, step.cause, owner.resources.team)
        try:
            await owner.append(extended)
        except Invalid as reason:
            await owner.append(refused(step.cause, "bad_output", f"it cannot be stored: {reason}"))
        except Retryable as reason:
            log.warning("… request %s: its plan has not grown yet: %s", owner.request_id, reason)
            await owner.log.changed(min(RETRY_SECONDS, owner.seconds_left()))
            return
        shown_growth(span, extended)
    _log_grown(owner, extended)


def _log_grown(owner: Owner, extended: Extended) -> None:
    if extended.refused is not None:
        log.warning("✗ plan    %s  %s refused: %s", owner.request_id, extended.cause, extended.refused.message)
    else:
        log.info("☰ plan    %s  %s: %s more", owner.request_id, extended.cause, counted(len(extended.add), "task"))
