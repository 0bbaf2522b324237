"""A pull holds no more than its slots, serves all its consumers, and survives what happens to the broker."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_bus.broker.embedded import Server
from muster_bus.broker.queues import task_queue
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_bus.slot_shares import shares
from muster_protocol.errors import BrokerAway
from muster_testing import pause, resume, until
from tests.bus.broker_tools import TAGS, HeldPull, api, consumer, put_task
from tests.bus.conftest import Pulling
from tests.guards import guards

CONSUMERS = list(task_queue(TAGS).consumers)


async def settle(holder: HeldPull, delivery: Delivery) -> None:
    delivery.lease.ack()
    holder.release(delivery)


@guards("libs/bus/muster_bus/pull.py", " - sum(pull.open for pull in self._pulls.values())", rule="I4", replace="")
async def test_two_slots_over_six_consumers_never_hold_more_than_two(bus: Bus, other: Bus, pulling: Pulling):
    holder = await pulling(other, CONSUMERS, slots=2)
    for n in range(5):  # the busy tag's turns leave pulls open at the idle ones
        await put_task(bus, "a", str(n))
        await settle(holder, await holder.next())

    await asyncio.gather(*(put_task(bus, tag, str(n)) for tag in TAGS for n in range(3)))
    deliveries = [await holder.next(), await holder.next()]
    await holder.pull.keeper.beat(deliveries[1].lease)
    held = [(await consumer(bus, name))["num_ack_pending"] for name in CONSUMERS]
    while deliveries:
        await settle(holder, deliveries.pop(0))
        if len(holder.all) < 23:
            deliveries.append(await holder.next())

    assert sum(held) == 2
    assert holder.most <= 2
    assert [delivery.number for delivery in holder.all] == [1] * 23


@pytest.mark.parametrize("slots", [1, 2])
async def test_no_busy_tag_starves_another(bus: Bus, pulling: Pulling, slots: int):
    for tag in TAGS[:3]:
        for n in range(10):
            await put_task(bus, tag, str(n))

    holder = await pulling(bus, CONSUMERS[:3], slots)
    holder.release_all()
    for _ in range(15):
        (await holder.next()).lease.ack()

    served = {tag: sum(delivery.subject == f"tasks.{tag}" for delivery in holder.all[:15]) for tag in TAGS[:3]}
    assert min(served.values()) >= 3


@pytest.mark.parametrize("slots", [1, 4])
async def test_idle_tags_keep_no_slots_from_a_busy_one(bus: Bus, other: Bus, pulling: Pulling, slots: int):
    for n in range(30 * slots):
        await put_task(bus, "a", str(n))

    holder = await pulling(other, CONSUMERS[:3], slots)
    began = time.monotonic()
    for _ in range(30 * slots):
        await settle(holder, await holder.next())

    assert time.monotonic() - began < 12  # it takes three; half a second for each look at an idle tag makes it thirty


async def test_an_idle_tag_is_served_soon_beside_a_busy_one(bus: Bus, pulling: Pulling):
    holder = await pulling(bus, CONSUMERS, slots=1)
    for n in range(20):
        await put_task(bus, "a", str(n))
    await holder.next()

    await put_task(bus, "f", "late")
    holder.release_all()
    await until(lambda: any(delivery.subject == "tasks.f" for delivery in holder.all), "the other tag is served")


@given(
    st.integers(1, 40),
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.integers(0, 11),
)
def test_all_free_slots_are_shared_out_and_the_first_in_line_gets_one(free: int, weights: list[int], first: int):
    shared = shares(free, weights, first % len(weights))

    assert sum(shared) == free
    assert shared[first % len(weights)] >= 1


@guards(
    "libs/bus/muster_bus/pull.py",
    "if self._is_closing or len(self.running)",
    rule="I4",
    replace="if self._is_closing or 0 * len(self.running)",
)
async def test_what_comes_though_no_slot_is_free_is_handed_back(bus: Bus, other: Bus, broker: Server, pulling: Pulling):
    """Pulls that were given up while the broker hung are all answered when it goes on."""
    holder = await pulling(other, CONSUMERS[:2], slots=2)
    await other.flush()
    pause(broker)
    began = holder.pull.last_turn_at
    await until(lambda: holder.pull.last_turn_at > began + 2.2, "the pulls were asked again")
    resume(broker)
    for n in range(6):
        await put_task(bus, "a", str(n))
        await put_task(bus, "b", str(n))

    settled: set[tuple[str, int]] = set()
    while len(settled) < 12:  # one that comes again, because its ack was late, is one all the same
        delivery = await holder.next()
        await settle(holder, delivery)
        settled.add((delivery.consumer, delivery.sequence))

    assert holder.most <= 2


@guards("libs/bus/muster_bus/pull.py", "await self._note_returned(delivery)", rule="I12")
async def test_a_message_returned_unread_is_noted_before_it_is_handed_back(bus: Bus):
    """The broker counts it as delivered; the note says that its handler was not called."""
    got: asyncio.Queue[Delivery] = asyncio.Queue()
    noted: list[tuple[int, bool]] = []

    async def note(delivery: Delivery) -> None:
        noted.append((delivery.number, delivery.lease.is_held))

    pull = Pull(bus, task_queue(["slow"]), 1, 60.0, got.put, note)
    await pull.start()
    pull.slots = 0
    await put_task(bus, "slow", "one")
    await until(lambda: bool(noted), "it was returned")
    pull.slots = 1

    async with asyncio.timeout(60):
        assert (await got.get()).number == 2
    assert noted == [(1, True)]
    await pull.close()
    pull.stop()


@guards(
    "libs/bus/muster_bus/pull.py",
    "        self._pulls.clear()\n        self._fill()",
    rule="I1",
    replace="        pass",
)
async def test_a_pull_that_was_open_when_the_broker_died_is_asked_again_at_once(
    bus: Bus, broker: Server, pulling: Pulling
):
    holder = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await bus.flush()

    broker.kill()
    await broker.start()
    await put_task(bus, "slow", "one")

    assert (await holder.next(within=9)).data == b"one"


async def test_a_consumer_that_is_deleted_and_made_again_is_pulled_from_again(bus: Bus, pulling: Pulling):
    holder = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await bus.flush()

    await api(bus, "CONSUMER.DELETE.TASKS.w_slow")
    await provision(bus, Provisioning(lease_seconds=1, ack_wait_seconds=60), ["default"], ["slow"])
    await put_task(bus, "slow", "one")

    assert (await holder.next(within=9)).data == b"one"


async def test_a_consumer_that_is_made_later_is_pulled_from(bus: Bus, pulling: Pulling):
    holder = await pulling(bus, ["w_later"], slots=1)

    await provision(bus, Provisioning(lease_seconds=1, ack_wait_seconds=1), ["default"], ["later"])
    await put_task(bus, "later", "one")

    assert (await holder.next(within=9)).data == b"one"


@guards("libs/bus/muster_bus/pull.py", "delivery.lease.drop()  # kept alive without a handler", rule="I1")
@guards("libs/bus/muster_bus/pull.py", "if isinstance(error, Retryable):", rule="I1", replace="if False:")
async def test_a_handler_that_raises_frees_its_slot_and_its_message_comes_again(
    bus: Bus, caplog: pytest.LogCaptureFixture
):
    numbers: dict[bytes, list[int]] = {b"good": [], b"bad": [], b"away": []}

    async def handle(delivery: Delivery) -> None:
        numbers[delivery.data].append(delivery.number)
        if delivery.data == b"bad" and delivery.number == 1:
            raise RuntimeError("a bug")
        if delivery.data == b"away" and delivery.number == 1:
            raise BrokerAway("no acknowledgement came")
        delivery.lease.ack()

    pull = Pull(bus, task_queue(["a"]), 1, 1.0, handle)
    await pull.start()
    for text in ("bad", "away", "good"):
        await put_task(bus, "a", text)
    await until(lambda: [len(n) for n in numbers.values()] == [1, 2, 2], "the messages come again", within=60)
    await asyncio.gather(*await pull.close())
    assert await pull.close() == []  # the second time nothing is left to do
    pull.stop()

    assert (numbers[b"good"][0], numbers[b"bad"][:2]) == (1, [1, 2])
    assert {record.message.split(": ")[-1]: bool(record.exc_info) for record in caplog.records} == {
        "a bug": True,
        "no acknowledgement came": False,  # it says all by itself
    }


async def test_what_is_handed_back_ten_times_is_still_delivered(bus: Bus, pulling: Pulling):
    holder = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await put_task(bus, "slow", "one")
    holder.release_all()

    for _ in range(10):
        (await holder.next()).lease.hand_back()

    assert (await holder.next(within=20)).number == 11


@guards(
    "libs/bus/muster_bus/pull.py",
    "if self._is_closing or len(self.running) >= self.slots or",
    rule="I12",
    replace="if len(self.running) >= self.slots or",
)
@guards(
    "libs/bus/muster_bus/pull.py",
    "await self._subscription.drain()",
    rule="I12",
    replace="await self._subscription.unsubscribe()",
)
async def test_nothing_waits_for_an_ack_timeout_after_a_clean_stop_though_messages_keep_coming(
    bus: Bus, other: Bus, pulling: Pulling
):
    """I12: the pulls are closed first, and what arrives meanwhile is handed back at once."""
    for _ in range(8):
        stopping = await pulling(other, ["w_slow"], slots=2000, ack_wait=60)
        async with messages_coming(bus) as coming:
            await until(lambda: len(coming) >= 40, "messages keep coming")
            begun = len(stopping.pull.running)
            running = await stopping.stop_pulling()
        for delivery in stopping.all:
            delivery.lease.hand_back()
        await stopping.close()
        await other.flush()

        peer = await pulling(bus, ["w_slow"], slots=2000, ack_wait=60)
        for _ in coming:
            (await peer.next(within=20)).lease.ack()
        await peer.close()

        assert len(running) == begun
        assert {delivery.data.decode() for delivery in peer.all} == set(coming)


@contextlib.asynccontextmanager
async def messages_coming(bus: Bus) -> AsyncGenerator[list[str]]:
    """Publishes without a pause; the list is what was stored."""
    stored: list[str] = []
    is_over = asyncio.Event()

    async def publish(name: int) -> None:
        while not is_over.is_set():
            text = f"{name}.{len(stored)}"
            await put_task(bus, "slow", text)
            stored.append(text)

    async with asyncio.TaskGroup() as group:
        for name in range(8):
            group.create_task(publish(name))
        yield stored
        is_over.set()
