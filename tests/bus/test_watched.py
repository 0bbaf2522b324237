"""A live subscription that the wire damaged is noticed although nobody has written anything, and is made anew."""

import pytest

from muster_bus.broker import silence, watched
from muster_bus.connection import Bus, Incoming
from muster_protocol import subjects
from muster_testing import Proxy, until, until_asked
from tests.bus.broker_tools import Recorder, api
from tests.bus.conftest import Connect
from tests.guards import guards


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(silence, "SILENCE_SECONDS", 1.0)


@guards("libs/bus/muster_bus/broker/watched.py", "self._silence.missed()", rule="I6", replace="pass", seconds=90)
async def test_a_worker_whose_subscription_was_damaged_hears_again(bus: Bus, proxy: Proxy, connect: Connect):
    """The broker took it for another subject, and all else on the connection works."""
    heard: list[Incoming] = []
    behind = await connect(proxy.url, "worker", "w1")
    proxy.replace(b"SUB control.>", b"SUB contrml.>")
    await behind.watch(subjects.ALL_CONTROL, heard.append)
    await behind.flush()

    async def is_heard() -> bool:
        await bus.publisher.store("control.r1", b"{}", {})
        return bool(heard)

    await until_asked(is_heard, "a control message arrives")
    assert behind.counters["reconnects"] == 1


@guards("libs/bus/muster_bus/broker/watched.py", 'return "." not in', rule="I6", replace='return True or "." not in')
async def test_an_idle_subscription_is_left_alone_and_its_echo_reaches_no_listener_and_no_stream(
    bus: Bus, connect: Connect
):
    heard: list[Incoming] = []
    watcher = await connect(bus.nc.connected_url.geturl() if bus.nc.connected_url else "", "worker", "w1")
    echoes = await Recorder.on(bus, "control.>")
    await watcher.watch(subjects.ALL_CONTROL, heard.append)

    await until(lambda: len(echoes.messages) > 3, "it writes to itself")
    await bus.publisher.store("control.r1", b"{}", {})
    await until(lambda: bool(heard), "what is meant for it arrives")

    assert [message.subject for message in heard] == ["control.r1"]
    assert (await api(bus, "STREAM.INFO.CONTROL"))["state"]["messages"] == 1
    assert watcher.counters["reconnects"] == 0
