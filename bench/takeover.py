"""How long the requests of a supervisor that is killed wait for a peer: from the kill to the last one's `taken`."""

import asyncio
import time

from bench.muster import Muster
from bench.row import Row
from muster_bus.broker.topology import Provisioning
from muster_bus.log import read_log
from muster_protocol.messages import Taken

REQUESTS = 20
SPREAD_SECONDS = 0.1  # between two requests, so that their leases do not end at the same moment
LOOK_SECONDS = 0.05
LIMIT_SECONDS = 60.0


async def takeover(muster: Muster) -> list[Row]:
    """Kill the only supervisor of several requests, beside a peer that has nothing to do."""
    lease = Provisioning().lease_seconds
    await muster.start_holder(REQUESTS)
    request_ids = await muster.open_requests(REQUESTS, every=SPREAD_SECONDS)
    await muster.start_peer()
    killed_at = time.time()
    muster.kill("supervisor")
    took = max(await asyncio.gather(*(_taken_after(muster, name, killed_at) for name in request_ids))) - killed_at
    await muster.cancel(request_ids)
    measured = f"{took:.1f} s until the last of {REQUESTS} requests went on at a peer; the lease is {lease:g} s"
    return [Row("supervisor killed, against its lease", measured, took - lease, hold=1, aim=0, unit="s more")]


async def _taken_after(muster: Muster, request_id: str, moment: float) -> float:
    """When a request was taken next, by the broker's clock: it is this machine's."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            for entry in await read_log(muster.client.bus, request_id):
                if isinstance(entry.body, Taken) and entry.time > moment:
                    return entry.time
            await asyncio.sleep(LOOK_SECONDS)
