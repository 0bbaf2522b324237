"""What a broker answers to a read may be damaged on the way: then it is asked again."""

import asyncio

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.nats_repairs import RepairedClient
from muster_bus.connection import Bus
from muster_bus.read_stream import read_subject
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


class CancelsItself(RepairedClient):
    """Cancels whoever waits in the moment in which a message wakes it."""

    waiting: asyncio.Task[object] | None = None

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        await super()._process_msg(sid, subject, reply, data, headers)
        if self.waiting is not None:
            asyncio.get_running_loop().call_soon(self.waiting.cancel)
            self.waiting = None


@guards("libs/bus/muster_bus/read_stream.py", "with heeding_cancellation():", rule="I12", replace="if True:")
async def test_a_cancellation_that_comes_with_a_page_is_not_forgotten(broker: Server, bus: Bus):
    await bus.store(result(), bus.origin("r1"), give_up_after=5)
    client = CancelsItself()
    await client.connect(broker.url)

    client.waiting = reading = asyncio.ensure_future(read_subject(client, "results.r1"))
    try:
        with pytest.raises(asyncio.CancelledError):
            await reading
    finally:
        await client.close()
