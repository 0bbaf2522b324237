"""Leases that outlive the loss of a broker: a hundred live ones on three nodes, and the leader killed."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.row import Row
from muster_bus.connection import Bus
from muster_bus.embedded import Cluster
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_bus.topology import Provisioning, provision
from muster_protocol.errors import MusterError
from muster_protocol.headers import Sender

LEASES = 100
LEASE_SECONDS = 10.0
WATCH_SECONDS = 14.0  # an election takes up to nine, a lost lease comes back within ten
START_SECONDS = 30.0


async def survived() -> list[Row]:
    """How many of a hundred leases the broker gave to somebody else because its leader died."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        cluster = Cluster(Path(name))
        await cluster.start()
        try:
            lost = await _lost(cluster)
        finally:
            await cluster.stop()
    measured = f"{lost} of {LEASES} delivered again after kill -9 of the leader of three"
    return [Row("leases lost when the broker's leader is killed", measured, lost, hold=0, aim=0, unit="")]


async def _lost(cluster: Cluster) -> int:
    bus = await Bus.connect(cluster.url, Sender("bench", "leases"))
    settings = Provisioning(replicas=3, ack_wait_seconds=LEASE_SECONDS)
    await _patiently(lambda: provision(bus, settings, ["bench"], ["lease"]))
    held: list[Delivery] = []
    full = asyncio.Event()
    over = asyncio.Event()

    async def hold(delivery: Delivery) -> None:
        held.append(delivery)
        if len(held) == LEASES:
            full.set()
        await over.wait()

    pull = Pull(bus, "TASKS", ["w_lease"], LEASES + 10, LEASE_SECONDS, hold)
    await pull.start()
    for number in range(LEASES):
        await bus.publisher.store("tasks.lease", b"x", {"Nats-Msg-Id": str(number)}, give_up_after=START_SECONDS)
    async with asyncio.timeout(START_SECONDS):
        await full.wait()
    info = await bus.nc.jetstream().consumer_info("TASKS", "w_lease")
    leader = info.cluster.leader if info.cluster else None
    cluster.servers[int((leader or "n0").removeprefix("n"))].kill()
    await asyncio.sleep(WATCH_SECONDS)
    lost = len(held) - LEASES
    over.set()
    await pull.close()
    pull.stop()
    await bus.close()
    return lost


async def _patiently(step: Callable[[], Awaitable[None]]) -> None:
    """Three nodes that have just started still elect their leaders."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                await step()
                return
            except MusterError:
                await asyncio.sleep(0.5)
