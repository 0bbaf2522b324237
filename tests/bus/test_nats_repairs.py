"""Each repair of nats-py's client: what it flushes, what can be cancelled, and when it leaves a dead peer."""

import asyncio
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from muster_bus import connection
from muster_bus.broker.embedded import Server
from muster_bus.broker.nats_repairs import RepairedClient
from muster_bus.connection import Bus
from muster_protocol.errors import BrokerAway
from muster_protocol.sender import Sender
from muster_testing import Proxy, pause, resume, until
from tests.bus.conftest import Connect
from tests.guards import guards

SENDER = Sender("tests", "one")
LARGE = 400_000  # bytes; twenty and some fill the buffer


async def test_a_flush_is_sent_after_everything_that_was_published_before_it(proxy: Proxy, connect: Connect):
    """nats-py's own sends its ping first, so that its pong proves nothing."""
    bus = await connect(proxy.url)
    proxy.sent.clear()

    await bus.nc.publish("some.subject", b"body")
    await bus.flush()

    assert proxy.sent.index(b"some.subject") < proxy.sent.index(b"PING")


async def test_a_publish_to_a_broker_that_does_not_read_can_give_up(broker: Server, bus: Bus):
    pause(broker)
    while not bus.nc.is_full:
        bus.nc.post("not.read", b"x" * LARGE)
        await asyncio.sleep(0)

    async with asyncio.timeout(60):
        with pytest.raises(BrokerAway, match="does not read what is sent"):
            await bus.publisher.store("tasks.slow", b"{}", {}, give_up_after=0.05)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await bus.publisher.store("tasks.slow", b"{}", {})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await bus.nc.flush()
    resume(broker)


async def test_a_node_that_hangs_is_left_though_it_has_not_read_what_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "PING_SECONDS", 0.5)
    nodes = [Server(tmp_path / name) for name in ("a", "b")]
    for node in nodes:
        await node.start()
    bus = await Bus.connect(",".join(node.url for node in nodes), SENDER)
    at = bus.nc.connected_url
    hung, healthy = sorted(nodes, key=lambda node: at is not None and node.port != at.port)

    pause(hung)
    while not bus.nc.is_full:
        bus.nc.post("not.read", b"x" * LARGE)
    await until(lambda: bus.counters["reconnects"] == 1, "it went to the other node")

    assert bus.nc.connected_url is not None
    assert bus.nc.connected_url.port == healthy.port
    await bus.close()
    for node in nodes:
        node.kill()


@pytest.mark.parametrize(("lease", "within"), [(4.0, 2.0), (1.0, 1.6)])
async def test_a_half_open_connection_is_noticed_within_half_a_lease(
    proxy: Proxy, connect: Connect, monkeypatch: pytest.MonkeyPatch, lease: float, within: float
):
    """A lease of one second would need pings so quick that a busy machine misses them."""
    monkeypatch.setattr(connection, "PING_SECONDS", 0.1)
    bus = await connect(proxy.url)
    bus.nc.notice_within_half(lease)
    assert bus.nc.options["ping_interval"] * 3 <= within

    proxy.is_silent = True
    began = asyncio.get_running_loop().time()
    await until(lambda: not bus.connected.is_set(), "it is noticed")

    assert asyncio.get_running_loop().time() - began < within * 2, "too late even for a busy machine"


class CancelsItself(RepairedClient):
    """Whoever waits is cancelled in the very moment in which the reply comes."""

    waiting: asyncio.Task[object] | None = None

    async def _request_sub_callback(self, msg: Msg) -> None:
        await super()._request_sub_callback(msg)
        if self.waiting is not None:
            self.waiting.cancel()

    async def _process_pong(self) -> None:
        await super()._process_pong()
        if self.waiting is not None:
            self.waiting.cancel()


async def _respond(message: Msg) -> None:
    await message.respond(b"here")


@pytest.mark.parametrize("ask", ["request", "flush"])
@guards("libs/bus/muster_bus/broker/cancelling.py", "if task is not None and task.cancelling() > before:", rule="I12")
async def test_a_cancellation_that_comes_with_the_reply_is_not_forgotten(broker: Server, ask: str):
    client = CancelsItself()
    await client.connect(broker.url)
    await client.subscribe("echo", cb=_respond)
    await client.flush()

    working = client.request("echo", timeout=30) if ask == "request" else client.flush()
    client.waiting = asyncio.ensure_future(working)
    try:
        with pytest.raises(asyncio.CancelledError):
            await client.waiting
    finally:
        client.waiting = None
        await client.close()
