"""Acknowledges the message of a request that is answered, after its trace has been told what the request came to.

Whoever wrote the answer may have died before it exported that, and then nobody else can know. So whoever acknowledges
exports it: after its own answer, and after a redelivery of an answered request once more, with the same ids and values.
"""

from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol.fold import RequestState
from muster_supervisor.spans import export_answer, export_waits, export_workflow, is_workflow_exported


async def acknowledge(bus: Bus, delivery: Delivery, state: RequestState) -> None:
    """Export the answer and acknowledge the message that was the lease."""
    trace = bus.tracing.request(state.request_id, delivery.headers)
    export_waits(bus, trace, state)
    export_answer(bus, delivery, trace, state)
    await bus.tracing.exported()
    delivery.lease.ack()


async def acknowledge_again(bus: Bus, delivery: Delivery, state: RequestState) -> None:
    """Acknowledge a message that came after the answer. Another message than the lease has no part in the trace."""
    is_lease = state.request_sequence in (0, delivery.sequence)  # 0: it was refused unread, and nobody has taken it
    if not is_lease or delivery.number == 1:
        delivery.lease.ack()
        return
    if not is_workflow_exported(state):
        export_workflow(bus, delivery, bus.tracing.request(state.request_id, delivery.headers), state)
    await acknowledge(bus, delivery, state)
