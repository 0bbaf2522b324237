"""A broker that answers and stores nothing is named, for as long as something waits for it, and no longer."""

import asyncio

import pytest

from muster_bus import publish
from muster_bus.broker.storing import why_not_stored
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus, Incoming
from muster_protocol.errors import BrokerAway
from muster_testing import until
from tests.bus.broker_tools import Recorder
from tests.guards import guards

SILENT = "silent.a"  # somebody listens there, so that the broker does not refuse it, and nobody acknowledges
PUBLISH = "libs/bus/muster_bus/publish.py"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "ACK_SECONDS", 0.3)
    monkeypatch.setattr(publish, "LATE_SECONDS", 0.95)


@guards(PUBLISH, "overdue - ACK_SECONDS", rule="I1", replace="now")
async def test_a_lone_message_that_is_not_stored_names_the_disk(
    bus: Bus, other: Bus, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """Its third try is the first that is late enough for a line in the log."""
    monkeypatch.setattr(publish, "SWEEP_SECONDS", 0.01)
    await Recorder.on(other, SILENT)

    storing = asyncio.create_task(bus.publisher.store(SILENT, b"{}", {}))
    await until(lambda: "not stored for" in caplog.text, "it is logged")
    storing.cancel()

    assert "the broker answers but stores nothing; its disk is probably full" in caplog.text


@guards(PUBLISH, "and now - self._late_at < MISSED_SECONDS", rule="I1", seconds=90)
async def test_nothing_is_amiss_when_nothing_waits(bus: Bus, other: Bus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(publish, "MISSED_SECONDS", 1.0)
    await Recorder.on(other, SILENT)
    with pytest.raises(BrokerAway):
        await bus.publisher.store(SILENT, b"{}", {}, give_up_after=1.2)

    assert bus.publisher.trouble
    await until(lambda: not bus.publisher.trouble, "it is forgotten")


@guards(PUBLISH, "self._late_since = 0.0  # also when", rule="I1", replace="pass  #", seconds=90)
async def test_a_late_acknowledgement_says_that_it_stores_again(bus: Bus, other: Bus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(publish, "MISSED_SECONDS", 3600.0)
    silent = await Recorder.on(other, SILENT)
    with pytest.raises(BrokerAway):
        await bus.publisher.store(SILENT, b"{}", {}, give_up_after=1.2)
    assert bus.publisher.trouble
    message: Incoming = silent.messages[-1]

    other.nc.post(message.reply, b'{"stream": "TASKS", "seq": 1}')

    await until(lambda: not bus.publisher.trouble, "it is cleared")


async def test_the_mark_of_who_asks_is_no_worker(bus: Bus):
    assert await why_not_stored(bus) == ""
    assert await live_workers(bus) == []
