"""A pull over lanes holds no more than its slots, takes high messages first, and starves no lane."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable

import pytest

from muster_bus.broker.queues import Queue, lane_of_consumer, task_queue
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_bus.lanes.lane_pull import BEYOND_SECONDS, LanePull, Lanes
from muster_bus.lease import Delivery
from muster_protocol.subjects import PRIORITIES, Priority, lane_of, tasks
from muster_testing import until
from tests.bus.broker_tools import consumer
from tests.guards import guards

TAGS = ["x", "y"]
WEIGHTS: dict[Priority, int] = {"high": 8, "normal": 4, "low": 1}
LANE_PULL = "libs/bus/muster_bus/lanes/lane_pull.py"


def lanes(give_way: Callable[[Delivery], bool] | None = None) -> Lanes:
    names = tuple(name for lane in PRIORITIES for name in task_queue(TAGS, lane).consumers)
    queue, low = Queue("TASKS", names), frozenset(task_queue(TAGS, "low").consumers)
    return Lanes(queue, WEIGHTS) if give_way is None else Lanes(queue, WEIGHTS, low, give_way)


class Held:
    """A pull whose handlers hold each delivery until they are released or cancelled."""

    def __init__(self, bus: Bus, slots: int, *, is_preemptive: bool = False, ends: bool = True) -> None:
        given = lanes(self._give_way if is_preemptive else None)
        self.pull = LanePull(bus, given, slots, 60.0, self._hold, self._note)
        self.order: list[str] = []
        self.gave_way: list[str] = []
        self.gave_way_as: list[int] = []  # which message of the stream
        self.returned: list[str] = []
        self.most = 0
        self._ends = ends
        self._handlers: dict[int, asyncio.Task[None]] = {}
        self._released = {lane: asyncio.Event() for lane in PRIORITIES}

    async def _note(self, delivery: Delivery) -> None:
        self.returned.append(lane_of(delivery.subject)[1])

    async def _hold(self, delivery: Delivery) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers[delivery.sequence] = handler
        self.order.append(lane_of(delivery.subject)[1])
        self.most = max(self.most, len(self._handlers))
        try:
            if not self._ends:
                await self._released[lane_of(delivery.subject)[1]].wait()
            delivery.lease.ack()
        except asyncio.CancelledError:
            delivery.lease.hand_back()
            raise
        finally:
            del self._handlers[delivery.sequence]

    def _give_way(self, delivery: Delivery) -> bool:
        self.gave_way.append(lane_of(delivery.subject)[1])
        self.gave_way_as.append(delivery.sequence)
        return self._handlers[delivery.sequence].cancel()

    def release_these(self, *of_lanes: Priority) -> None:
        """Release those that are held now."""
        for lane in of_lanes or PRIORITIES:
            self._released[lane].set()
            self._released[lane].clear()

    def release(self) -> None:
        self._ends = True
        self.release_these()

    async def close(self) -> None:
        running = await self.pull.close()
        for handler in running:
            handler.cancel()
        await asyncio.wait(running, timeout=5) if running else None
        self.pull.stop()


@pytest.fixture
async def with_lanes(bus: Bus) -> Bus:
    await provision(bus, Provisioning(lease_seconds=1, ack_wait_seconds=60, has_lanes=True), ["default"], TAGS)
    return bus


async def put(bus: Bus, lane: Priority, count: int, tag: str = "x") -> None:
    store = bus.publisher.store
    await asyncio.gather(*(store(tasks(tag, lane), b"", {"Nats-Msg-Id": secrets.token_hex(8)}) for _ in range(count)))


@guards(LANE_PULL, "turns.shares(self.free, contending)", rule="I4", replace="[self.free, 0, 0]")
@pytest.mark.parametrize("slots", [1, 4])
async def test_while_all_lanes_wait_each_starts_as_often_as_its_weight_says(with_lanes: Bus, slots: int):
    for tag in TAGS:
        await asyncio.gather(put(with_lanes, "high", 20, tag), put(with_lanes, "normal", 20, tag))
        await put(with_lanes, "low", 20, tag)

    held = Held(with_lanes, slots)
    await held.pull.start()
    await until(lambda: len(held.order) == 120, "all are taken")
    await held.close()

    first = Counter(held.order[:39])  # three rounds of thirteen
    assert held.most <= slots
    assert abs(first["high"] - 24) <= slots
    assert abs(first["normal"] - 12) <= slots
    assert 3 <= first["low"] <= 3 + slots
    assert held.returned == []


async def test_the_slots_are_never_promised_twice(with_lanes: Bus, other: Bus):
    held = Held(other, 2, ends=False)
    await held.pull.start()
    await asyncio.gather(*(put(with_lanes, lane, 5, tag) for lane in PRIORITIES for tag in TAGS))
    await until(lambda: len(held.order) == 2, "two are taken")
    await other.flush()

    found = [await consumer(with_lanes, name) for name in lanes().queue.consumers]
    assert sum(one["num_ack_pending"] for one in found) == 2
    held.release()
    await until(lambda: len(held.order) == 30, "all are taken")
    await held.close()

    assert held.most <= 2
    assert held.returned == []


async def test_an_idle_pull_finds_what_comes_in_any_lane(with_lanes: Bus):
    held = Held(with_lanes, 1)
    await held.pull.start()
    for turn in range(3):
        for lane in PRIORITIES:
            before = len(held.order)
            await put(with_lanes, lane, 1, TAGS[turn % 2])
            await until(lambda before=before: len(held.order) > before, f"the {lane} one is taken")
    await held.close()

    assert held.order == list(PRIORITIES) * 3


@guards(LANE_PULL, "        self._look_beyond()\n\n", rule="I4", replace="\n")
async def test_a_high_message_takes_the_place_of_the_low_one_that_was_taken_last(with_lanes: Bus):
    held = Held(with_lanes, 2, is_preemptive=True, ends=False)
    await held.pull.start()
    await put(with_lanes, "low", 2)
    await until(lambda: held.order == ["low", "low"], "low ones have all slots")

    await put(with_lanes, "high", 1)
    await until(lambda: "high" in held.order, "the high one is taken")

    assert (held.gave_way, held.most) == (["low"], 2)
    held.release()
    await until(lambda: len(held.order) == 4, "the low one comes again")
    await held.close()
    assert held.returned == []


@guards(
    "libs/bus/muster_bus/lanes/giving_way.py", "if delivery.number <= MOST_DELIVERIES:", rule="I4", replace="if True:"
)
async def test_a_low_message_gives_way_three_times_and_then_another_does_though_it_began_before(with_lanes: Bus):
    held = Held(with_lanes, 2, is_preemptive=True, ends=False)
    await held.pull.start()
    for count in (1, 2):
        await put(with_lanes, "low", 1)
        await until(lambda count=count: held.order.count("low") == count, "the low ones have all slots")
    for turn in range(1, 5):
        await put(with_lanes, "high", 1)
        await until(lambda turn=turn: held.order.count("high") == turn, "the high one is taken")
        held.release_these("high")
        await until(lambda turn=turn: held.order.count("low") == 2 + turn, "the low one comes again")
    await held.close()

    assert held.gave_way_as == [2, 2, 2, 1]


@guards(LANE_PULL, "and not self._is_high_waiting():", rule="I4", replace="and True:")
async def test_a_low_message_that_has_its_share_is_left_alone_while_high_ones_wait(with_lanes: Bus):
    await asyncio.gather(put(with_lanes, "high", 20), put(with_lanes, "low", 1))
    held = Held(with_lanes, 1, is_preemptive=True, ends=False)
    await held.pull.start()
    for number in range(1, 10):
        await until(lambda number=number: len(held.order) == number, "the next is taken")
        if "low" in held.order:
            break
        held.release_these()

    began = time.monotonic()
    await until(lambda: time.monotonic() - began > 6 * BEYOND_SECONDS, "several looks would have been due")
    assert (held.order[-1], held.gave_way) == ("low", [])
    await held.close()


def test_every_lane_of_a_tag_has_a_consumer_of_its_own():
    names = [task_queue(["high_x"], lane).consumers[0] for lane in PRIORITIES]

    assert [lane_of_consumer(name) for name in names] == [("high_x", lane) for lane in PRIORITIES]
    assert lane_of_consumer("s_default") is None
