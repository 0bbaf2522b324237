"""Leases that outlive the loss of a broker: a hundred live ones on three nodes, and the leader killed."""

import asyncio
import tempfile
from pathlib import Path

from bench.row import Row
from muster_bus.broker.queues import task_queue
from muster_bus.broker.topology import Provisioning
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.sender import Sender
from muster_testing.cluster import Cluster, provision_when_elected, running_cluster

LEASES = 100
LEASE_SECONDS = 10.0
WATCH_SECONDS = 14.0  # an election takes up to nine, a lost lease comes back within ten
START_SECONDS = 30.0


async def survived() -> list[Row]:
    """How many of a hundred leases the broker gave to somebody else because its leader died."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        async with running_cluster(Path(name)) as cluster:
            lost = await _lost(cluster)
    measured = f"{lost} of {LEASES} delivered again after kill -9 of the leader of three"
    return [Row("leases lost when the broker's leader is killed", measured, lost, hold=0, aim=0, unit="")]


async def _lost(cluster: Cluster) -> int:
    bus = await Bus.connect(cluster.url, Sender("bench", "leases"))
    settings = Provisioning(replicas=3, ack_wait_seconds=LEASE_SECONDS)
    await provision_when_elected(bus, settings, ["bench"], ["lease"])
    held: list[Delivery] = []
    full = asyncio.Event()
    over = asyncio.Event()

    async def hold(delivery: Delivery) -> None:
        held.append(delivery)
        if len(held) == LEASES:
            full.set()
        await over.wait()

    queue = task_queue(["lease"])
    pull = Pull(bus, queue, LEASES + 10, LEASE_SECONDS, hold)
    await pull.start()
    for number in range(LEASES):
        await bus.publisher.store(
            subjects.tasks("lease"), b"x", {h.MESSAGE_ID: str(number)}, give_up_after=START_SECONDS
        )
    async with asyncio.timeout(START_SECONDS):
        await full.wait()
    info = await bus.nc.jetstream().consumer_info(queue.stream, queue.consumers[0])
    leader = info.cluster.leader if info.cluster else None
    cluster.node(leader or "n0").kill()
    await asyncio.sleep(WATCH_SECONDS)
    lost = len(held) - LEASES
    over.set()
    await pull.close()
    pull.stop()
    await bus.close()
    return lost
