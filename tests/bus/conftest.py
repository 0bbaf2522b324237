"""Real brokers for the bus tests: one node for each test, three nodes for a whole run."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from muster_bus.connection import Bus
from muster_bus.embedded import Cluster, Server
from muster_bus.topology import Provisioning, provision
from muster_protocol.errors import MusterError
from muster_protocol.headers import Sender
from tests.bus.broker_tools import CALM, TAGS, Gate, Hands, api, until_asked

Connect = Callable[..., Awaitable[Bus]]
Pulling = Callable[..., Awaitable[Hands]]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncGenerator[Server]:
    server = Server(tmp_path / "broker")
    await server.start()
    yield server
    await server.stop()


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
    """A second connection to the same node, of somebody else."""
    assert bus.connected.is_set()
    return await connect(broker.url, "worker", "w2")


@pytest.fixture
async def pulling() -> AsyncGenerator[Pulling]:
    """Pulls that the test need not close."""
    all_hands: list[Hands] = []

    async def on(bus: Bus, consumers: list[str], slots: int, ack_wait: float = 1.0) -> Hands:
        assignments = Hands(bus, consumers, slots, ack_wait)
        all_hands.append(assignments)
        await assignments.pull.start()
        return assignments

    yield on
    for assignments in all_hands:
        await assignments.close()


@pytest.fixture
async def gate(broker: Server) -> AsyncGenerator[Gate]:
    gate = Gate(broker.port)
    await gate.open()
    yield gate
    await gate.shut()


@pytest.fixture
async def gate_to_node(three_nodes: Cluster) -> AsyncGenerator[Gate]:
    gate = Gate(three_nodes.servers[0].port)
    await gate.open()
    yield gate
    await gate.shut()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    """One cluster for all tests that need one: electing its first leader takes seconds."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    await cluster.start()
    bus = await Bus.connect(cluster.url, Sender("tests", "provision"))

    async def is_provisioned() -> bool:
        try:
            await api(bus, "INFO", within=0.5)
            await provision(
                bus, Provisioning(replicas=3, lease_seconds=10, ack_wait_seconds=10), ["default"], ["a", "b"]
            )
        except (MusterError, TimeoutError, AssertionError):
            return False
        return True

    await until_asked(is_provisioned, "the cluster is provisioned", within=60)
    await bus.close()
    yield cluster
    await cluster.stop()


@pytest.fixture
async def nodes(three_nodes: Cluster, connect: Connect) -> list[Bus]:
    """One connection to each node."""
    return [await connect(server.url, "supervisor", f"s{n}") for n, server in enumerate(three_nodes.servers)]
