"""A connection reports a missing broker, comes back by itself, and never keeps a service from stopping."""

import asyncio
import logging
import time

import pytest

from muster_bus.broker.embedded import Server, free_port
from muster_bus.connection import Bus
from muster_protocol.errors import BrokerAway
from muster_protocol.messages import Progress
from muster_protocol.sender import Sender
from muster_testing import pause, until
from tests.bus.broker_tools import Recorder, result
from tests.bus.conftest import Connect

SENDER = Sender("tests", "one")
PROGRESS = Progress(request_id="r1", task_id="t1", attempt=1, text="half")


async def test_a_missing_broker_is_an_error_with_its_address_and_what_to_do():
    url = f"nats://127.0.0.1:{free_port()}"
    began = time.monotonic()

    with pytest.raises(BrokerAway) as caught:
        await Bus.connect(url, SENDER, timeout=0.5)

    assert time.monotonic() - began < 3
    text = f"no NATS server answers at {url} (connection refused); start one with `muster up`, or set MUSTER_NATS_URL"
    assert str(caught.value) == text


async def test_the_timeout_holds_whatever_the_attempt_is_doing_when_it_ends():
    url = f"nats://127.0.0.1:{free_port()}"
    connecting = [Bus.connect(url, SENDER, timeout=0.2 + number / 500) for number in range(200)]

    async with asyncio.timeout(60):
        ended = await asyncio.gather(*connecting, return_exceptions=True)

    assert {type(error) for error in ended} == {BrokerAway}


async def test_a_broker_that_hangs_is_an_error_within_the_timeout(broker: Server):
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


async def test_closing_sends_what_was_published_last(other: Bus, broker: Server):
    recorder = await Recorder.on(other, "events.r1")
    leaving = await Bus.connect(broker.url, SENDER)

    leaving.announce(PROGRESS, leaving.origin("r1"))
    await leaving.close()

    await until(lambda: len(recorder.messages) == 1, "the last message arrived")


async def test_every_message_carries_its_headers(bus: Bus, other: Bus):
    recorder = await Recorder.on(other, "results.r1")

    await bus.store(result(), bus.origin("r1", term=7))
    await other.flush()

    headers = recorder.messages[0].headers or {}
    assert (headers["sender"], headers["kind"], headers["schema"]) == ("supervisor/s1", "result", "1")
    assert (headers["request-id"], headers["Nats-Msg-Id"], headers["term"]) == ("r1", "r1.t1.1.w1.1.7", "7")


async def test_a_trace_that_came_with_a_message_travels_on_and_none_is_made_up(bus: Bus, other: Bus):
    recorder = await Recorder.on(other, "results.r1")
    given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    await bus.store(result("t1"), bus.origin("r1"), carrier={"traceparent": given})
    await bus.store(result("t2"), bus.origin("r1"), carrier={})
    await other.flush()

    assert [(message.headers or {}).get("traceparent") for message in recorder.messages] == [given, None]


async def test_an_event_is_dropped_and_counted_while_the_broker_is_away(bus: Bus, broker: Server):
    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")

    bus.announce(PROGRESS, bus.origin("r1"))

    assert bus.counters["events dropped"] == 1


async def test_a_connection_logs_at_its_end_what_went_wrong(
    broker: Server, connect: Connect, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "muster.bus")
    bus, untroubled = await connect(broker.url), await connect(broker.url)
    await untroubled.close()
    assert "broker: " not in caplog.text

    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")
    for _ in range(2):
        bus.announce(PROGRESS, bus.origin("r1"))
    await broker.start()
    await until(lambda: bus.counters["reconnects"] == 1, "the connection is back", within=60)
    await bus.close()

    assert "events dropped 2" in caplog.text
    assert "reconnects 1" in caplog.text


async def test_a_connection_comes_back_by_itself_and_calls_what_was_registered(bus: Bus, broker: Server):
    called: list[str] = []

    async def on_reconnect() -> None:
        called.append("back")

    bus.on_reconnect(on_reconnect)
    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")
    await broker.start()
    await until(bus.connected.is_set, "the connection is back", within=60)

    await until(lambda: called == ["back"], "the callback was called")
    assert bus.counters["reconnects"] == 1
