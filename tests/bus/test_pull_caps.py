"""A pull holds no more messages of some consumers together than their cap."""

import asyncio

from muster_bus.broker.queues import task_queue
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_testing import until
from tests.bus.broker_tools import put_task


async def test_what_comes_beyond_a_cap_is_returned_unread(bus: Bus):
    """A pull that was given up as lost may still be answered when its slot is taken by another message."""
    got: asyncio.Queue[Delivery] = asyncio.Queue()
    noted: list[int] = []

    async def note(delivery: Delivery) -> None:
        noted.append(delivery.number)

    slow = task_queue(["slow"])
    pull = Pull(bus, slow, 4, 60.0, got.put, note)
    await pull.start()
    pull.cap(slow.consumers, 0)
    await put_task(bus, "slow", "one")

    await until(lambda: bool(noted), "it was returned")
    assert got.empty()
    await pull.close()
    pull.stop()
