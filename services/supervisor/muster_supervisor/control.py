"""What people say about a running request, copied into its log, where it has an order against everything else."""

from muster_bus.read import Raw, read_subject
from muster_bus.reported_ids import RECENT_SECONDS
from muster_bus.reports import Source
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import CONTROL_KINDS, Cancel, Control, Decision
from muster_supervisor.owner import Owner

MAX_REASON = 2000  # characters: it is repeated in the log, the answer and the abort


async def read_controls(owner: Owner, after: int) -> int:
    """Decide upon everything that was said since; returns how far it was read."""
    subject = subjects.control(owner.request_id)
    after = max(after, owner.state.controls_seen)
    for raw in await read_subject(owner.bus.nc, "CONTROL", subject, after, from_leader=True):
        after = raw.sequence
        try:
            by, control = await _opened(owner, raw)
        except Invalid as reason:
            if owner.now() - raw.time < RECENT_SECONDS:  # what is older was reported when it came
                source = Source.of_raw("CONTROL", raw)
                await owner.bus.report(str(reason), source, request_id=owner.request_id)
            continue
        if isinstance(control, Cancel):
            reason = control.reason[:MAX_REASON]
            decision = Decision(decision="cancel", control_sequence=raw.sequence, by=by, reason=reason)
            await owner.append(decision, f"{owner.request_id}.decision.{owner.term}.{raw.sequence}")
    return after


async def _opened(owner: Owner, raw: Raw) -> tuple[str, Control]:
    """Who said what, or why it cannot be used."""
    by = h.require_sender(raw.headers)
    kind = h.require_kind(raw.headers, CONTROL_KINDS)
    control = kind.read(await owner.bus.body_of(raw.headers, raw.data))
    if control.request_id != owner.request_id:
        raise Invalid(f"the message is about {control.request_id}", "request_id")
    return by, control
