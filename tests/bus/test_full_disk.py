"""A broker whose disk is full says nothing: who stores through it names the disk, and goes on when there is room."""

from pathlib import Path

import pytest

from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_bus.process.health import Health
from muster_protocol.errors import BrokerAway
from muster_protocol.sender import Sender
from muster_testing import running_broker, until
from tests.bus.broker_tools import result
from tests.small_disk import SIZE


class Beating:
    """A service of which only the connection matters."""

    last_turn_at = float("inf")

    def __init__(self, bus: Bus) -> None:
        self.bus = bus


@pytest.mark.sweep
async def test_a_full_disk_is_named_and_what_waited_is_stored_after_a_restart(small_disk: Path):
    async with running_broker(small_disk / "broker") as broker:
        bus = await Bus.connect(broker.url, Sender("supervisor", "s1"))
        await provision(bus, Provisioning(), ["default"], ["a"])
        health = Health(Beating(bus))
        junk = small_disk / "junk"
        with pytest.raises(OSError, match="No space left"):
            junk.write_bytes(b"x" * SIZE)

        with pytest.raises(BrokerAway, match="stores nothing; its disk is probably full"):
            await bus.publisher.store("tasks.a", b"x" * 300_000, {}, give_up_after=25)
        assert not health.is_ready
        assert "its disk is probably full" in health.trouble
        assert bus.counters["reconnects"] == 0, "the connection is sound, and replacing it helps nobody"

        junk.unlink()
        await broker.stop()
        await broker.start()
        await until(bus.connected.is_set, "it is connected again")
        await bus.store(result(), bus.origin("r1"), give_up_after=30)
        assert health.is_ready
        await bus.close()
