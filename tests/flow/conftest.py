"""What the tests of the coordinator start from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import provision
from muster_bus.connection import Bus
from muster_protocol.sender import Sender
from tests.flow.coordinator_harness import SETTINGS, ServiceGroup


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[ServiceGroup]:
    server = Server(tmp_path)
    await server.start()
    bus = await Bus.connect(server.url, Sender("supervisor", "s1"))
    await provision(bus, SETTINGS, ["default"], ["math"])
    group = ServiceGroup(server, bus)
    await group.open()
    yield group
    await group.close()
    await bus.close()
    await server.stop()
