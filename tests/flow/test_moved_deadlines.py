"""A worker that finds the deadline of its message passed asks the log: it moves while a person is waited for."""

import asyncio
import time

import pytest

from muster_bus.connection import Bus
from muster_protocol.messages import LogBody, PlanRecorded, Question, Reservation, Reserved, Taken, Task
from muster_protocol.plan import Plan, TaskSpec
from tests.flow.in_process import connected
from tests.guards import guards
from tests.harness import Muster

REQUEST = "r1"
SECONDS = 2.0  # of the request, without what people add


class WrittenByHand:
    """The log of a request whose owner does what a test says."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.term = 0
        self.began = time.time()

    async def own(self, body: LogBody) -> int:
        stored = await self._bus.store(body, self._bus.origin(REQUEST, term=self.term, nonce=body.kind))
        return stored.sequence

    async def dispatch(self) -> Task:
        """A task whose timeout the deadline of its request cuts short."""
        deadline = self.began + SECONDS
        named = {"team": "default", "deadline": deadline, "request_hash": "hash"}
        taken = {"instance": "here", "delivery": 1, "request_sequence": 1, "stored_at": self.began}
        self.term = await self.own(Taken.model_validate({**named, **taken}))
        plan = Plan(tasks=(TaskSpec(id="a", description="{}", tag="scripted"),))
        await self.own(PlanRecorded.model_validate({**named, "plan": plan, "in_flight": 1}))
        cut = Reservation(task_id="a", attempt=1, timeout_seconds=SECONDS, wanted_seconds=60.0)
        reserved = await self.own(Reserved(attempts=(cut,)))
        return Task(
            request_id=REQUEST,
            task_id="a",
            attempt=1,
            tag="scripted",
            team="default",
            description="{}",
            timeout_seconds=SECONDS,
            deadline=deadline,
            reserved_at=self.began,
            reserved_sequence=reserved,
        )


@guards("services/worker/muster_worker/history.py", "and now >= await self._end_of(task)", replace="", rule="I4")
@pytest.mark.parametrize("is_asked", [True, False])
async def test_a_task_whose_first_deadline_has_passed_is_done_if_the_deadline_has_moved(
    muster: Muster, is_asked: bool
) -> None:
    async with connected(muster, "here") as bus:
        log = WrittenByHand(bus)
        task = await log.dispatch()
        await muster.bus.store(task, bus.origin(REQUEST))
        if is_asked:  # by another task of the request
            until = log.began + 600
            await log.own(Question(id="0" * 16, cause="tool:b", text="May it?", until=until))
        await asyncio.sleep(SECONDS)  # no worker is there: that is the fault, not a wait for it

        await muster.start("worker", "w1")
        await muster.until_settled("tasks.scripted")

    assert muster.executions(REQUEST) == ({"a": 1} if is_asked else {})
