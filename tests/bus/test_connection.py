"""A connection says when no broker answers, comes back by itself, and never keeps a service from leaving."""

import asyncio
import logging
import time
from pathlib import Path

import pytest

from muster_bus import connection
from muster_bus.connection import Bus
from muster_bus.embedded import Server, free_port
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway
from muster_protocol.headers import Sender
from muster_protocol.messages import Progress
from muster_testing import Proxy, pause, until
from tests.bus.broker_tools import Recorder, result
from tests.bus.conftest import Connect

SENDER = Sender("tests", "one")
SAID = Progress(request_id="r1", task_id="t1", attempt=1, text="half")


async def test_no_broker_is_said_within_the_timeout_with_the_address_and_the_way_out():
    url = f"nats://127.0.0.1:{free_port()}"
    began = time.monotonic()

    with pytest.raises(BrokerAway) as caught:
        await Bus.connect(url, SENDER, timeout=0.5)

    assert time.monotonic() - began < 3
    text = f"no NATS server answers at {url} (timeout); start one with `muster up`, or set MUSTER_NATS_URL"
    assert str(caught.value) == text


async def test_the_timeout_holds_whatever_the_attempt_is_doing_when_it_ends():
    url = f"nats://127.0.0.1:{free_port()}"
    connecting = [Bus.connect(url, SENDER, timeout=0.2 + number / 500) for number in range(200)]

    async with asyncio.timeout(60):
        ended = await asyncio.gather(*connecting, return_exceptions=True)

    assert {type(error) for error in ended} == {BrokerAway}


async def test_a_broker_that_hangs_is_said_within_the_timeout(broker: Server):
    pause(broker)
    began = time.monotonic()

    with pytest.raises(BrokerAway, match="no NATS server answers"):
        await Bus.connect(broker.url, SENDER, timeout=0.5)

    assert time.monotonic() - began < 4


async def test_closing_takes_no_longer_than_its_limits_when_the_broker_hangs(broker: Server):
    bus = await Bus.connect(broker.url, SENDER)
    pause(broker)
    began = time.monotonic()

    await bus.close()

    assert time.monotonic() - began < 4


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
        bus.nc.post("nobody.hears", b"x" * 400_000)
    await until(lambda: bus.counters["reconnects"] == 1, "it went to the other node")

    assert bus.nc.connected_url is not None
    assert bus.nc.connected_url.port == healthy.port
    await bus.close()
    for node in nodes:
        node.kill()


async def test_a_flush_goes_behind_what_was_said_before_it(proxy: Proxy, connect: Connect):
    """nats-py's own does not: it proves nothing of what was said a moment before."""
    bus = await connect(proxy.url)
    proxy.sent.clear()

    await bus.nc.publish("some.subject", b"word")
    await bus.flush()

    assert proxy.sent.index(b"some.subject") < proxy.sent.index(b"PING")


async def test_closing_sends_what_was_said_last(other: Bus, broker: Server):
    recorder = await Recorder.on(other, "events.r1")
    leaving = await Bus.connect(broker.url, SENDER)

    leaving.tell("events.r1", SAID, request_id="r1", message_id="e1")
    await leaving.close()

    await until(lambda: len(recorder.messages) == 1, "the last word was heard")


async def test_every_message_carries_its_headers(bus: Bus, other: Bus):
    recorder = await Recorder.on(other, "results.r1")

    await bus.store("results.r1", result(), request_id="r1", message_id="one", term=7)
    await other.flush()

    headers = recorder.messages[0].headers or {}
    assert (headers["sender"], headers["kind"], headers["schema"]) == ("supervisor/s1", "result", "1")
    assert (headers["request-id"], headers["Nats-Msg-Id"], headers["term"]) == ("r1", "one", "7")


async def test_a_trace_that_came_with_a_message_travels_on_and_none_is_made_up(bus: Bus, other: Bus):
    recorder = await Recorder.on(other, "results.r1")
    given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    await bus.store("results.r1", result(), request_id="r1", message_id="one", carrier={"traceparent": given})
    await bus.store("results.r1", result(), request_id="r1", message_id="two", carrier={})
    await other.flush()

    assert [(message.headers or {}).get("traceparent") for message in recorder.messages] == [given, None]


async def test_what_nobody_waits_for_is_dropped_and_counted_while_the_broker_is_away(bus: Bus, broker: Server):
    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")

    bus.tell(subjects.events("r1"), SAID, request_id="r1", message_id="e1")

    assert bus.counters["events dropped"] == 1


async def test_a_connection_says_at_its_end_what_went_wrong(
    broker: Server, connect: Connect, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "muster.bus")
    bus, untroubled = await connect(broker.url), await connect(broker.url)
    await untroubled.close()
    assert "with the broker" not in caplog.text

    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")
    for _ in range(2):
        bus.tell(subjects.events("r1"), SAID, request_id="r1", message_id="e1")
    await broker.start()
    await until(lambda: bus.counters["reconnects"] == 1, "the connection is back", within=60)
    await bus.close()

    assert "events dropped 2" in caplog.text
    assert "reconnects 1" in caplog.text


async def test_a_connection_comes_back_by_itself_and_tells_those_who_asked(bus: Bus, broker: Server):
    told: list[str] = []

    async def on_reconnect() -> None:
        told.append("back")

    bus.on_reconnect(on_reconnect)
    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")
    await broker.start()
    await until(bus.connected.is_set, "the connection is back", within=60)

    await until(lambda: told == ["back"], "those who asked were told")
    assert bus.counters["reconnects"] == 1
