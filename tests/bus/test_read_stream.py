"""What a broker answers to a read may be damaged on the way: then it is asked again."""

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_testing import Proxy
from tests.bus.broker_tools import result
from tests.bus.conftest import Connect
from tests.guards import guards

LEADER, DIRECT = b'"type":"io.nats.jetstream', b"Nats-Sequence: "


class Damaging(Proxy):
    """Changes one byte of the first answer that has these."""

    def __init__(self, broker_port: int, place: bytes) -> None:
        super().__init__(broker_port)
        self._place = place
        self.has_changed = False

    def _from_broker(self, chunk: bytes) -> bytes:
        if self.has_changed or self._place not in chunk:
            return chunk
        self.has_changed = True
        return chunk.replace(self._place, self._place[:-1] + b"\xff", 1)


@guards(
    "libs/bus/muster_bus/read_stream.py",
    "except (ValueError, KeyError) as error:",
    rule="I1",
    replace="except ZeroDivisionError as error:",
    case="leader",
)
@pytest.mark.parametrize("place", [LEADER, DIRECT], ids=["leader", "direct"])
async def test_an_answer_that_cannot_be_read_is_asked_for_again(
    broker: Server, bus: Bus, connect: Connect, place: bytes
):
    await bus.store(result(), bus.origin("r1"), give_up_after=5)
    proxy = Damaging(broker.port, place)
    await proxy.open()
    try:
        reader = await connect(proxy.url, "worker", "w2")

        (stored,) = await reader.read("results.r1", from_leader=True)

        assert proxy.has_changed
        assert stored.headers["sender"]
    finally:
        await proxy.close()
