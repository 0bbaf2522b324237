"""Connections to real brokers for the bus tests: one node for each test, three nodes for a whole run."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
import pytest_asyncio

from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_protocol.sender import Sender
from muster_testing.cluster import Cluster, provision_when_elected
from muster_testing.proxy import Proxy, running_proxy
from tests.bus.broker_tools import CALM, TAGS, HeldPull

Connect = Callable[..., Awaitable[Bus]]
Pulling = Callable[..., Awaitable[HeldPull]]


@pytest.fixture
async def connect() -> AsyncGenerator[Connect]:
    """Connections that the test need not close."""
    buses: list[Bus] = []

    async def to(url: str, service: str = "supervisor", instance: str = "s1") -> Bus:
        buses.append(await Bus.connect(url, Sender(service, instance)))
        return buses[-1]

    yield to
    for bus in buses:
        await bus.close()


@pytest.fixture
async def bus(broker: Server, connect: Connect) -> Bus:
    """A connection to one provisioned node. The tag `slow` has an ack wait that no test sees the end of."""
    bus = await connect(broker.url)
    await provision(bus, Provisioning(lease_seconds=1, ack_wait_seconds=1), ["default"], TAGS)
    await provision(bus, Provisioning(lease_seconds=1, ack_wait_seconds=CALM), ["default"], ["calm"])
    await provision(bus, Provisioning(lease_seconds=1, ack_wait_seconds=60), ["default"], ["slow"])
    return bus


@pytest.fixture
async def other(broker: Server, bus: Bus, connect: Connect) -> Bus:
    """A second connection to the same node, of another service."""
    assert bus.connected.is_set()
    return await connect(broker.url, "worker", "w2")


@pytest.fixture
async def pulling() -> AsyncGenerator[Pulling]:
    """Pulls that the test need not close."""
    pulls: list[HeldPull] = []

    async def on(bus: Bus, consumers: list[str], slots: int, ack_wait: float = 1.0) -> HeldPull:
        holder = HeldPull(bus, consumers, slots, ack_wait)
        pulls.append(holder)
        await holder.pull.start()
        return holder

    yield on
    for holder in pulls:
        await holder.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def three_nodes(cluster: Cluster) -> Cluster:
    """The cluster of the whole run, with streams on all three nodes."""
    bus = await Bus.connect(cluster.url, Sender("tests", "provision"))
    settings = Provisioning(replicas=3, lease_seconds=10, ack_wait_seconds=10)
    await provision_when_elected(bus, settings, ["default"], ["a", "b"])
    await bus.close()
    return cluster


@pytest.fixture
async def proxy_to_node(three_nodes: Cluster) -> AsyncGenerator[Proxy]:
    async with running_proxy(three_nodes.servers[0].port) as proxy:
        yield proxy


@pytest.fixture
async def nodes(three_nodes: Cluster, connect: Connect) -> list[Bus]:
    """One connection to each node."""
    return [await connect(server.url, "supervisor", f"s{n}") for n, server in enumerate(three_nodes.servers)]
