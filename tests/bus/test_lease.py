"""A lease is kept by confirmed keep-alives, settled once, and nothing is sent for it when it is lost."""

import asyncio
import time

from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_bus.lease import NAK, TRIES_PER_LEASE, Lease
from muster_testing import Proxy, pause, resume, until, until_asked
from tests.bus.broker_tools import CALM, Recorder, consumer, put_task
from tests.bus.conftest import Connect, Pulling
from tests.guards import guards

ACK_WAIT = 1.0


async def lose(lease: Lease) -> None:
    """Wait until it is lost, and until no confirmation that is under way can bring it back."""
    # Not for long: after ten seconds the connection itself is given up, and then any lease is lost.
    await until(lambda: time.monotonic() - lease.confirmed_at > ACK_WAIT * 1.6, "the lease is lost", within=8)
    assert not lease.is_held


async def test_an_ack_removes_the_message(bus: Bus, pulling: Pulling):
    holder = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await put_task(bus, "slow", "one")

    (await holder.next()).lease.ack()

    async def is_gone() -> bool:
        info = await consumer(bus, "w_slow")
        return info["num_ack_pending"] == info["num_pending"] == 0

    await until_asked(is_gone, "the message is gone", within=60)


async def test_what_is_handed_back_comes_again_at_once(bus: Bus, other: Bus, pulling: Pulling):
    first = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await put_task(bus, "slow", "one")
    delivery = await first.next()
    second = await pulling(other, ["w_slow"], slots=1, ack_wait=60)

    delivery.lease.hand_back()
    again = await second.next(within=20)

    assert (again.sequence, again.number) == (delivery.sequence, 2)


async def test_what_is_handed_back_with_a_delay_comes_again_after_it(bus: Bus, other: Bus, pulling: Pulling):
    first = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await put_task(bus, "slow", "one")
    delivery = await first.next()
    second = await pulling(other, ["w_slow"], slots=1, ack_wait=60)
    began = time.monotonic()

    delivery.lease.hand_back(delay_seconds=0.6)
    await second.next(within=20)

    assert time.monotonic() - began >= 0.55


async def test_a_lease_is_settled_once(bus: Bus, other: Bus, pulling: Pulling):
    recorder = await Recorder.on(other, "$JS.ACK.TASKS.w_slow.>")
    holder = await pulling(bus, ["w_slow"], slots=1, ack_wait=60)
    await put_task(bus, "slow", "one")
    delivery = await holder.next()

    delivery.lease.ack()
    delivery.lease.ack()
    delivery.lease.hand_back()
    await bus.flush()
    await other.flush()

    assert recorder.acks_of(delivery) == [b"+ACK"]


@guards("libs/bus/muster_bus/pull.py", "self.keeper.keep(delivery.lease)", rule="I1")
async def test_a_lease_is_kept_for_several_ack_waits(bus: Bus, other: Bus, pulling: Pulling):
    recorder = await Recorder.on(other, "$JS.ACK.TASKS.w_calm.>")
    holder = await pulling(bus, ["w_calm"], slots=1, ack_wait=CALM)
    await put_task(bus, "calm", "one")
    delivery = await holder.next()
    next_in_line = await pulling(other, ["w_calm"], slots=1, ack_wait=CALM)

    await until(lambda: len(recorder.acks_of(delivery)) >= 15, "it was kept alive for longer than an ack wait")

    assert delivery.lease.is_held
    assert next_in_line.got.empty()


@guards("libs/bus/muster_bus/lease.py", "if now - lease.confirmed_at >= self.ack_wait:", rule="I1", replace="if False:")
@guards(
    "libs/bus/muster_bus/lease.py",
    "lease.sent_at = sent_at",
    rule="I1",
    replace="lease.sent_at = lease.confirmed_at = sent_at",
    seconds=30,
)
async def test_a_lease_that_the_broker_does_not_confirm_is_lost_and_sends_nothing_more(
    bus: Bus, other: Bus, broker: Server, pulling: Pulling
):
    recorder = await Recorder.on(other, "$JS.ACK.TASKS.w_a.>")
    former = await pulling(bus, ["w_a"], slots=1)
    await put_task(bus, "a", "one")
    lost = await former.next()
    next_in_line = await pulling(other, ["w_a"], slots=1)
    await other.flush()

    pause(broker)
    paused_at = time.monotonic()
    await lose(lost.lease)
    resume(broker)
    held = await next_in_line.next()
    await bus.flush()  # what was sent before the loss has arrived now
    await other.flush()
    sent_before = len(recorder.acks_of(lost))
    lost.lease.hand_back()
    began = time.monotonic()
    await until(lambda: time.monotonic() - began > ACK_WAIT * 1.5, "that is longer than an ack wait")
    await bus.flush()
    await other.flush()

    assert lost.lease.confirmed_at <= paused_at < lost.lease.sent_at
    assert sent_before <= 2 * TRIES_PER_LEASE
    assert len(recorder.acks_of(lost)) == sent_before
    assert held.number >= 2


@guards("libs/bus/muster_bus/lease.py", "if self.is_held and self._settle():", rule="I1", replace="if self._settle():")
async def test_a_lost_lease_is_not_handed_back_from_its_next_holder(
    bus: Bus, other: Bus, broker: Server, pulling: Pulling
):
    recorder = await Recorder.on(other, "$JS.ACK.TASKS.w_a.>")
    former = await pulling(bus, ["w_a"], slots=1)
    await put_task(bus, "a", "one")
    lost = await former.next()
    next_in_line = await pulling(other, ["w_a"], slots=2)
    await other.flush()
    pause(broker)
    await lose(lost.lease)
    resume(broker)
    await next_in_line.next()

    lost.lease.hand_back()
    await bus.flush()
    await other.flush()

    assert NAK not in recorder.acks_of(lost)


async def test_a_holder_that_was_cut_off_sends_no_late_keep_alive_or_nak_after_its_reconnect(
    bus: Bus, other: Bus, proxy: Proxy, connect: Connect, pulling: Pulling
):
    recorder = await Recorder.on(other, "$JS.ACK.TASKS.w_a.>")
    behind = await connect(proxy.url)
    former = await pulling(behind, ["w_a"], slots=1)
    await put_task(bus, "a", "one")
    await put_task(bus, "a", "two")
    handed = await former.next()
    more = await pulling(behind, ["w_a"], slots=1)
    kept = await more.next()
    await proxy.close()
    await until(lambda: not behind.connected.is_set(), "the connection is lost")

    handed.lease.hand_back()
    await lose(kept.lease)
    next_in_line = await pulling(other, ["w_a"], slots=4)
    numbers = [(await next_in_line.next()).number, (await next_in_line.next()).number]
    sent_before = recorder.acks_of(handed) + recorder.acks_of(kept)
    await proxy.open()
    await until(behind.connected.is_set, "the former holder is back")
    await behind.flush()
    await other.flush()

    assert min(numbers) >= 2
    assert recorder.acks_of(handed) + recorder.acks_of(kept) == sent_before


async def test_a_handler_that_forgets_its_lease_keeps_it_while_the_process_lives(bus: Bus, pulling: Pulling):
    holder = await pulling(bus, ["w_a"], slots=1)
    await put_task(bus, "a", "one")
    delivery = await holder.next()

    holder.release(delivery)
    await until(lambda: not holder.pull.running, "the slot is free")
    first = delivery.lease.confirmed_at
    await until(lambda: delivery.lease.confirmed_at > first, "the lease is kept on")

    assert delivery.lease.is_held


async def test_a_keep_alive_asks_the_broker(bus: Bus, broker: Server, pulling: Pulling):
    holder = await pulling(bus, ["w_a"], slots=1)
    await put_task(bus, "a", "one")
    delivery = await holder.next()

    assert any([await holder.pull.keeper.beat(delivery.lease) for _ in range(3)])  # a busy broker may be late once

    broker.kill()
    async with asyncio.timeout(20):
        assert not await holder.pull.keeper.beat(delivery.lease)
