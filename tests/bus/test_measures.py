"""What was measured of roles, in the bucket that the supervisors of a team share."""

import asyncio

from muster_bus.broker.embedded import Server
from muster_bus.buckets.kv import Bucket
from muster_bus.buckets.measures import add_measured, read_measures
from muster_bus.connection import Bus
from muster_protocol.workers.measured import Measured

AT = 1_700_000_000.0


async def test_what_several_add_at_once_is_all_there_also_after_the_broker_came_back(
    broker: Server, bus: Bus, other: Bus
):
    added = Measured(tries=2, successes=1, seconds=3, usd=0.5, at=AT)
    await asyncio.gather(*(add_measured(one, "default", "good", added) for one in (bus, other) for _ in range(4)))
    await add_measured(bus, "default", "slow", added)
    await add_measured(bus, "others", "good", added)

    broker.kill()
    await broker.start()

    known = await read_measures(bus, "default")
    assert known == {"good": Measured(tries=16, successes=8, seconds=24, usd=4, at=AT), "slow": added}


async def test_a_value_that_cannot_be_read_counts_as_nothing_and_is_written_over(bus: Bus):
    await Bucket(bus, "measures").put("default.good", b'{"tries": "many"}')
    added = Measured(tries=1, successes=1, at=AT)

    assert await read_measures(bus, "default") == {"good": Measured()}
    assert await add_measured(bus, "default", "good", added) == added
