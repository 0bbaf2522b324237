"""What people say about a running request, copied into its log, where it has an order against everything else."""

from muster_bus.connection import Source
from muster_bus.read import Raw, read_subject
from muster_bus.told import RECENT_SECONDS
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import CONTROL_KINDS, Cancel, Control, Decision
from muster_supervisor.owner import Owner


async def read_controls(owner: Owner) -> None:
    """Decide upon everything that was said since the last decision."""
    subject = subjects.control(owner.request_id)
    for raw in await read_subject(owner.bus.nc, "CONTROL", subject, owner.state.controls_seen, fresh=True):
        try:
            by, control = await _opened(owner, raw)
        except Invalid as reason:
            if owner.now() - raw.time < RECENT_SECONDS:  # what is older was reported when it came
                source = Source.read("CONTROL", raw)
                await owner.bus.report(str(reason), source, request_id=owner.request_id)
            continue
        if isinstance(control, Cancel):
            decision = Decision(decision="cancel", control_sequence=raw.sequence, by=by, reason=control.reason)
            await owner.append(decision, f"{owner.request_id}.decision.{owner.term}.{raw.sequence}")


async def _opened(owner: Owner, raw: Raw) -> tuple[str, Control]:
    """Who said what, or why it cannot be used."""
    by = h.checked_sender(raw.headers)
    kind = h.checked_kind(raw.headers, CONTROL_KINDS)
    control = kind.read(await owner.bus.body_of(raw.headers, raw.data))
    if control.request_id != owner.request_id:
        raise Invalid(f"the message is about {control.request_id}", "request_id")
    return by, control
