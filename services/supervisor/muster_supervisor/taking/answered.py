"""Acknowledges the message of a request that is answered, after its trace has been told what the request came to.

Whoever wrote the answer may have died before it exported that, and then nobody else can know. So whoever acknowledges
exports it: after its own answer, and after a redelivery of an answered request once more, with the same ids and values.
The same holds for the callback that the request asks for: it is stored before the message is acknowledged.
"""

from muster_bus.lease import Delivery
from muster_protocol.fold import RequestState
from muster_supervisor.calling.callbacks import Callbacks
from muster_supervisor.spans import export_answer, export_waits, export_workflow, is_workflow_exported


async def acknowledge(callbacks: Callbacks, delivery: Delivery, state: RequestState) -> None:
    """Export the answer, store the callback and acknowledge the message that was the lease."""
    bus = callbacks.bus
    trace = bus.tracing.request(state.request_id, delivery.headers)
    export_waits(bus, trace, state)
    export_answer(bus, delivery, trace, state)
    await bus.tracing.exported()
    await callbacks.store(delivery, state)  # before the ack
    delivery.lease.ack()


async def acknowledge_again(callbacks: Callbacks, delivery: Delivery, state: RequestState) -> None:
    """Acknowledge a message that came after the answer. Another message than the lease has no part in the trace."""
    is_lease = state.request_sequence in (0, delivery.sequence)  # 0: it was refused unread, and nobody has taken it
    if not is_lease or delivery.number == 1:
        await callbacks.store(delivery, state)  # it may hold the body that counts, which its lease did not
        delivery.lease.ack()
        return
    bus = callbacks.bus
    if not is_workflow_exported(state):
        export_workflow(bus, delivery, bus.tracing.request(state.request_id, delivery.headers), state)
    await acknowledge(callbacks, delivery, state)
