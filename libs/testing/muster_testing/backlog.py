"""How much waits in a queue, and how much of it is being worked on."""

from dataclasses import dataclass

from nats.errors import Error as NatsError

from muster_bus.broker.queues import Queue
from muster_bus.connection import Bus


@dataclass(frozen=True, slots=True)
class Backlog:
    """The messages that nobody has, and those that somebody has and did not acknowledge."""

    waiting: int
    working: int


async def backlog(bus: Bus, queue: Queue) -> Backlog | None:
    """Of a queue with one consumer; None when the broker does not answer."""
    stream, (consumer,) = queue
    try:
        info = await bus.nc.jetstream(timeout=2).consumer_info(stream, consumer)
    except (TimeoutError, NatsError):
        return None
    return Backlog(info.num_pending or 0, info.num_ack_pending or 0)
