"""Three brokers on loopback that replicate to one another, for tests of elections and lost nodes."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from muster_bus.broker.embedded import Server, free_port
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError
from muster_testing.waiting import until_asked

ELECTION_SECONDS = 60.0  # the first election takes up to ten on an idle machine
CONFIG = """\
cluster {{ name: muster, listen: 127.0.0.1:{port}, no_advertise: true, routes: [{routes}] }}
"""


class Cluster:
    """The nodes of one cluster, named n0, n1, …"""

    def __init__(self, folder: Path, size: int = 3) -> None:
        routes = [free_port() for _ in range(size)]
        listed = ", ".join(f"nats://127.0.0.1:{port}" for port in routes)
        self.servers = [
            Server(folder / f"n{n}", name=f"n{n}", extra=CONFIG.format(port=route, routes=listed))
            for n, route in enumerate(routes)
        ]

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers)

    def node(self, name: str) -> Server:
        """The node that a stream or a consumer names as its leader."""
        return self.servers[int(name.removeprefix("n"))]

    async def start(self) -> None:
        await asyncio.gather(*(server.start() for server in self.servers))

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self.servers))


@asynccontextmanager
async def running_cluster(folder: Path, size: int = 3) -> AsyncGenerator[Cluster]:
    """A cluster with its files in `folder`; it may still be electing its leader."""
    cluster = Cluster(folder, size)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()


async def provision_when_elected(bus: Bus, settings: Provisioning, teams: Sequence[str], tags: Sequence[str]) -> None:
    """Make the streams as soon as nodes that have just started have elected their leader."""

    async def is_provisioned() -> bool:
        try:
            if not await _has_leader(bus):
                return False
            await provision(bus, settings, teams, tags)
        except (MusterError, TimeoutError):
            return False
        return True

    await until_asked(is_provisioned, "the cluster has a leader and the streams", ELECTION_SECONDS)


async def _has_leader(bus: Bus) -> bool:
    """Ask with a short limit: provisioning itself would wait ten seconds for a leader that is elected after two."""
    reply = await bus.nc.request("$JS.API.INFO", b"", timeout=0.5)
    return "error" not in json.loads(reply.data)
