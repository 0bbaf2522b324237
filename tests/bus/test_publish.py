"""Publishing: stored once or refused with a reason, whatever happens to the broker meanwhile."""

import asyncio
import time

import pytest

from muster_bus import publish
from muster_bus.broker.embedded import Server
from muster_bus.broker.queues import delete_task
from muster_bus.connection import PENDING_BYTES, Bus
from muster_bus.publish import MAX_IN_FLIGHT, CompareAndSetLost, NoStream, Outgoing
from muster_bus.read_stream import read_subject
from muster_protocol.errors import BrokerAway, Invalid
from muster_testing import Proxy, pause, resume, until, until_asked
from tests.bus.broker_tools import Recorder, change_stream, result
from tests.bus.conftest import Connect
from tests.guards import guards

LARGE = 400_000  # bytes; twenty and some fill the buffer


async def test_everything_is_stored_once_though_the_broker_is_killed_meanwhile(bus: Bus, broker: Server):
    storing = [asyncio.create_task(bus.store(result(f"t{n}"), bus.origin("r1"))) for n in range(400)]
    await asyncio.wait(storing, return_when=asyncio.FIRST_COMPLETED)

    broker.kill()
    await broker.start()
    async with asyncio.timeout(60):
        stored = await asyncio.gather(*storing)

    ids = [raw.headers["Nats-Msg-Id"] for raw in await read_subject(bus.nc, "results.r1", from_leader=True)]
    assert sorted(ids) == sorted(f"r1.t{n}.1.w1.1" for n in range(400))
    assert len({one.sequence for one in stored}) == 400


async def test_many_at_once_are_stored_in_order_and_once_though_the_broker_is_killed_meanwhile(
    bus: Bus, broker: Server
):
    many = [await bus.outgoing(result(f"t{n}"), bus.origin("r1"), None) for n in range(MAX_IN_FLIGHT + 100)]
    storing = asyncio.create_task(bus.store_all(many))
    await until(lambda: bus.nc.stats["out_msgs"] > 100, "some are sent")

    broker.kill()
    await broker.start()
    async with asyncio.timeout(60):
        stored = await storing

    kept = {raw.sequence: raw for raw in await read_subject(bus.nc, "results.r1", from_leader=True)}
    assert len(kept) == len(many)
    assert [kept[one.sequence].headers["Nats-Msg-Id"] for one in stored] == [
        headers["Nats-Msg-Id"] for _, _, headers in many
    ]


@guards(
    "libs/bus/muster_bus/publish.py",
    "except _TryAgain:\n                self.retries += 1\n        return await self.store(*message)",
    rule="I1",
    replace="except ZeroDivisionError:\n                self.retries += 1\n        return await self.store(*message)",
)
async def test_many_at_once_are_asked_for_again_when_their_acknowledgements_are_lost(
    bus: Bus, proxy: Proxy, connect: Connect
):
    behind = await connect(proxy.url)
    many = [await behind.outgoing(result(f"t{n}"), behind.origin("r1"), None) for n in range(3)]
    proxy.drops_replies = True
    storing = asyncio.create_task(behind.store_all(many))
    await until(lambda: behind.publisher.retries > 0 or storing.done(), "no acknowledgement came")

    proxy.drops_replies = False
    async with asyncio.timeout(60):
        stored = await storing

    kept = await read_subject(bus.nc, "results.r1", from_leader=True)
    assert [one.sequence for one in stored] == [raw.sequence for raw in kept]


async def test_a_lost_acknowledgement_is_asked_for_again_under_the_same_id(bus: Bus, proxy: Proxy, connect: Connect):
    behind = await connect(proxy.url)
    proxy.drops_replies = True
    storing = asyncio.create_task(behind.store(result(), behind.origin("r1")))

    async def is_stored() -> bool:
        return bool(await read_subject(bus.nc, "results.r1", from_leader=True))

    await until_asked(is_stored, "the broker has it")
    await proxy.close()
    await proxy.open()
    async with asyncio.timeout(60):
        stored = await storing

    assert stored.is_duplicate
    assert len(await read_subject(bus.nc, "results.r1", from_leader=True)) == 1


@guards(
    "libs/bus/muster_bus/publish.py",
    'acked.set_exception(_TryAgain(self.trouble or "no acknowledgement came"))',
    rule="I1",
    seconds=30,
)
@pytest.mark.usefixtures("bus")
async def test_a_broker_that_does_not_acknowledge_is_asked_again(proxy: Proxy, connect: Connect):
    behind = await connect(proxy.url)
    proxy.drops_replies = True
    storing = asyncio.create_task(behind.store(result(), behind.origin("r1")))

    await until(lambda: behind.publisher.retries > 0, "it was tried again")
    proxy.drops_replies = False
    async with asyncio.timeout(60):
        stored = await storing

    assert stored.sequence == 1


@guards(
    "libs/bus/muster_bus/publish.py",
    "if give_up is not None and time.monotonic() > give_up:",
    rule="I1",
    replace="if True:",
)
async def test_a_full_stream_holds_a_publish_back_until_there_is_room(bus: Bus):
    await change_stream(bus, "TASKS", max_bytes=3000)
    first = await bus.publisher.store("tasks.a", b"x" * 2000, {})
    storing = asyncio.create_task(bus.publisher.store("tasks.a", b"y" * 2000, {}))
    await until(lambda: bus.publisher.retries > 0, "it was refused")
    assert not storing.done()

    await delete_task(bus, first.sequence)
    async with asyncio.timeout(60):
        stored = await storing

    assert stored.sequence == first.sequence + 1


async def test_publishes_that_wait_for_a_full_stream_log_it_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(publish, "LATE_SECONDS", 0.2)
    await change_stream(bus, "RESULTS", max_msgs=1)
    await bus.store(result("t0"), bus.origin("r1"))
    waiting = [asyncio.create_task(bus.store(result(f"t{n}"), bus.origin("r1"))) for n in (1, 2)]

    await until(lambda: "results.r1  not stored for" in caplog.text, "it is logged")
    before = bus.publisher.retries
    await until(lambda: bus.publisher.retries > before + 4, "both have tried again")
    await change_stream(bus, "RESULTS", max_msgs=100)
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting)

    assert caplog.text.count("not stored for") == 1


@guards("libs/bus/muster_bus/publish.py", 'if code in REFUSED_FOR_NOW or error.get("code") == 503:', rule="I1")
async def test_a_publish_to_a_full_stream_gives_up_in_time_with_the_reason(bus: Bus):
    await change_stream(bus, "TASKS", max_bytes=3000)
    await bus.publisher.store("tasks.a", b"x" * 2000, {})

    with pytest.raises(BrokerAway, match=r"tasks\.a was not stored within 0\.3 s: maximum bytes exceeded"):
        await bus.publisher.store("tasks.a", b"y" * 2000, {}, give_up_after=0.3)


@guards("libs/bus/muster_bus/publish.py", "frozenset({10071, 10164})", rule="I2", replace="frozenset({10164})")
async def test_a_lost_compare_and_set_is_raised_at_once_and_never_tried_again(bus: Bus):
    await bus.publisher.store("results.r1", b"{}", {})

    with pytest.raises(CompareAndSetLost, match="wrong last sequence: 1"):
        await bus.publisher.store("results.r1", b"{}", {}, expected=0)

    assert bus.publisher.retries == 0


async def test_a_subject_that_no_stream_takes_is_a_clear_error(bus: Bus):
    with pytest.raises(NoStream, match=r"nobody\.here was not stored within 0\.3 s: no stream is bound"):
        await bus.publisher.store("nobody.here", b"{}", {}, give_up_after=0.3)


async def test_a_publish_to_a_broker_that_is_away_gives_up_in_time_with_the_reason(bus: Bus, broker: Server):
    broker.kill()
    await until(lambda: not bus.connected.is_set(), "the connection is lost")
    began = time.monotonic()

    with pytest.raises(BrokerAway, match=r"tasks\.a was not stored within 0\.3 s: the broker is away"):
        await bus.publisher.store("tasks.a", b"{}", {}, give_up_after=0.3)

    assert time.monotonic() - began < 2


async def test_a_body_that_the_broker_does_not_take_is_invalid(bus: Bus):
    with pytest.raises(Invalid, match="9000000 bytes are more than the broker takes"):
        await bus.publisher.store("tasks.a", b"x" * 9_000_000, {})


async def test_the_headers_of_the_caller_stay_as_they_were(bus: Bus):
    headers = {"sender": "worker/w1"}

    await bus.publisher.store("results.r1", b"{}", headers, expected=0)
    await bus.store_raw("$KV.workers.x", b"{}", headers, give_up_after=1)

    assert headers == {"sender": "worker/w1"}


@guards(
    "libs/bus/muster_bus/publish.py",
    "self._places = asyncio.Semaphore(MAX_IN_FLIGHT)",
    rule="I1",
    replace="self._places = asyncio.Semaphore(10 * MAX_IN_FLIGHT)",
)
async def test_no_more_than_a_bound_is_in_flight(bus: Bus, other: Bus):
    recorder = await Recorder.on(other, "no.stream")
    storing = [asyncio.create_task(bus.publisher.store("no.stream", b"", {})) for _ in range(MAX_IN_FLIGHT + 100)]

    await until(lambda: len(recorder.messages) >= MAX_IN_FLIGHT, "as many as may are in flight")
    await bus.flush()
    await other.flush()

    assert len(recorder.messages) == MAX_IN_FLIGHT
    for one in storing:
        one.cancel()
    await asyncio.wait(storing)


async def test_a_publish_that_waits_for_a_free_slot_gives_up_in_time(bus: Bus, other: Bus):
    recorder = await Recorder.on(other, "no.stream")
    storing = [asyncio.create_task(bus.publisher.store("no.stream", b"", {})) for _ in range(MAX_IN_FLIGHT)]
    await until(lambda: len(recorder.messages) >= MAX_IN_FLIGHT, "every slot is taken")

    async with asyncio.timeout(60):
        with pytest.raises(BrokerAway, match=r"not stored within 0\.01 s: 512 others are being stored"):
            await bus.publisher.store("tasks.a", b"{}", {}, give_up_after=0.01)
    for one in storing:
        one.cancel()
    await asyncio.wait(storing)


@guards(
    "libs/bus/muster_bus/publish.py",
    "        if self._nc.is_full:\n            await self._nc.make_room()",
    rule="I1",
    replace="        pass",
)
async def test_many_large_ones_wait_for_a_broker_that_does_not_read(broker: Server, bus: Bus):
    large: list[Outgoing] = [("tasks.slow", b"x" * LARGE, {}) for _ in range(100)]
    pause(broker)
    storing = asyncio.create_task(bus.publisher.store_all(large))
    await until(lambda: bus.nc.stats["out_bytes"] > PENDING_BYTES, "the buffer is full")
    await asyncio.wait([storing], timeout=0.1)

    assert bus.nc.stats["out_bytes"] < 2 * PENDING_BYTES + 2 * LARGE  # once in our buffer, once in the socket's
    resume(broker)
    async with asyncio.timeout(30):
        assert len(await storing) == len(large)


@guards(
    "libs/bus/muster_bus/publish.py",
    "except (ValueError, KeyError, AttributeError, TypeError):",
    rule="I1",
    replace="except ZeroDivisionError:",
)
async def test_a_reply_that_no_stream_sent_is_not_an_acknowledgement(bus: Bus, other: Bus):
    await other.subscribe("not.stored", lambda message: other.nc.post(message.reply, b"ok"))
    await other.flush()

    async with asyncio.timeout(60):
        with pytest.raises(BrokerAway, match="the reply is not an acknowledgement of a stream"):
            await bus.publisher.store("not.stored", b"", {}, give_up_after=0.01)


@pytest.mark.usefixtures("bus")
async def test_what_waits_for_an_acknowledgement_ends_when_the_connection_closes(proxy: Proxy, connect: Connect):
    behind = await connect(proxy.url)
    proxy.drops_replies = True
    storing = asyncio.create_task(behind.publisher.store("tasks.a", b"{}", {}))
    await until(lambda: not storing.done() and behind.nc.stats["out_msgs"] > 0, "it was sent")

    behind.publisher.close()

    with pytest.raises(BrokerAway, match="the connection is closing"):
        await storing
