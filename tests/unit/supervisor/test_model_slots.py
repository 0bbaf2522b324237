"""Slots of the supervisor's model go to those who wait by their priority, and none is lost."""

import asyncio

from muster_agent.team.schema import Priorities
from muster_protocol.subjects import PRIORITIES, Priority
from muster_supervisor.choosing.model_slots import ModelSlots
from tests.guards import guards


class Callers:
    """Callers of a model that write down when they get their slot."""

    def __init__(self, slots: ModelSlots) -> None:
        self._slots = slots
        self.order: list[Priority] = []

    async def call(self, priority: Priority) -> None:
        async with self._slots.held(priority):
            self.order.append(priority)
            await asyncio.sleep(0)


async def test_high_ones_that_wait_come_first_and_low_ones_have_their_share() -> None:
    callers = Callers(ModelSlots(1, Priorities(high=2, normal=1, low=1)))

    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            for priority in reversed(PRIORITIES):
                group.create_task(callers.call(priority))

    assert callers.order[0] == "low", "nobody else waited yet"
    assert callers.order[1:3] == ["high", "normal"]
    assert [callers.order[3:11].count(priority) for priority in PRIORITIES] == [4, 2, 2]
    assert len(callers.order) == 18


@guards(
    "services/supervisor/muster_supervisor/choosing/model_slots.py",
    "            elif not turn.cancelled():  # it got the slot at the same moment\n                self._give_on()\n",
    rule="I4",
    replace="",
)
async def test_the_slot_of_one_who_gives_up_goes_to_the_next() -> None:
    slots = ModelSlots(1)
    callers = Callers(slots)
    async with asyncio.timeout(5):
        async with slots.held("normal"):
            waiting = [asyncio.create_task(callers.call("normal")) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
        waiting[1].cancel()  # its turn has just come
        await asyncio.gather(*waiting, return_exceptions=True)
        await callers.call("low")

    assert callers.order == ["normal", "low"]
