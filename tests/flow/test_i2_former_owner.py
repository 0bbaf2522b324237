"""I2: whoever may not be the owner any more writes nothing, also before the fold would ignore it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from muster_protocol.messages import Answer, AnswerStatus, Result, ResultStatus, Taken
from muster_supervisor.owner import LeaseLost, Owner, Superseded
from muster_supervisor.run import Run
from muster_testing import until
from tests.flow.in_process import connected, delivery_of, hang_while, owner_of
from tests.guards import guards
from tests.harness import Muster
from tests.unit.protocol.log_builder import answer, planned, task

ANSWER = Answer(request_id="r1", status=AnswerStatus.DONE, text="too late")


async def takes(muster: Muster) -> list[tuple[str, int]]:
    entries = await muster.entries("r1", Taken)
    return [(entry.body.instance, entry.body.delivery) for entry in entries if isinstance(entry.body, Taken)]


async def lost(owner: Owner) -> None:
    await until(lambda: not owner.lease.is_held, "the lease ran out")


@guards(
    "services/supervisor/muster_supervisor/owner.py",
    "            raise Superseded\n        if not self.lease.is_held:\n            raise LeaseLost",
    rule="I2",
    replace="            raise Superseded",
)
async def test_an_owner_whose_lease_ran_out_writes_nothing(muster: Muster) -> None:
    async with connected(muster, "here") as bus:
        owner = owner_of(muster, bus, 1, ack_wait=0.5)
        assert await owner.take_first()
        await lost(owner)

        with pytest.raises(LeaseLost):
            await owner.append(ANSWER)
        with pytest.raises(LeaseLost):
            await owner.compare_and_set(ANSWER)

    assert len(await muster.log("r1")) == 1


@guards(
    "services/supervisor/muster_supervisor/owner.py",
    "        if not self.lease.is_held:\n            raise LeaseLost\n        if not await self.log.compare_and_set(",
    rule="I2",
    replace="        if not await self.log.compare_and_set(",
    case="take_first",
)
@guards(
    "services/supervisor/muster_supervisor/owner.py",
    "        if not self.lease.is_held:\n            raise LeaseLost\n        self.term = await",
    rule="I2",
    replace="        self.term = await",
    case="take",
)
@pytest.mark.parametrize("way", [Owner.take_first, Owner.take])
async def test_a_request_whose_lease_ran_out_is_not_taken(
    muster: Muster, way: Callable[[Owner], Awaitable[object]]
) -> None:
    async with connected(muster, "here") as bus:
        owner = owner_of(muster, bus, 1, ack_wait=0.01)
        await lost(owner)

        with pytest.raises(LeaseLost):
            await way(owner)

    assert await muster.log("r1") == []


@guards("services/supervisor/muster_supervisor/owner.py", "if self.term and self.state.term != self.term:", rule="I2")
async def test_an_owner_that_saw_its_successor_writes_nothing(muster: Muster) -> None:
    async with connected(muster, "here") as bus, connected(muster, "next") as other:
        owner, successor = owner_of(muster, bus, 1), owner_of(muster, other, 2)
        await owner.take()
        await successor.take()
        await owner.log.refresh()

        with pytest.raises(Superseded):
            await owner.append(ANSWER)
        with pytest.raises(Superseded):
            await owner.compare_and_set(ANSWER)

    assert await takes(muster) == [("here", 1), ("next", 2)]
    assert len(await muster.log("r1")) == 2


@guards("services/supervisor/muster_supervisor/run.py", "await self._check_not_stale()", rule="I2")
async def test_a_delivery_that_lay_in_the_socket_of_a_hung_owner_takes_nothing_from_its_successor(
    muster: Muster,
) -> None:
    async def succeed() -> None:
        async with connected(muster, "next") as other:
            await owner_of(muster, other, 3).take()

    async with connected(muster, "here") as bus:
        run = Run(owner_of(muster, bus, 1))
        supervising = asyncio.create_task(run.supervise())
        await muster.until_log("r1", lambda state: state.in_flight == 1)

        hang_while(succeed)
        run.on_redelivery(delivery_of(bus, 2, 60.0))
        async with asyncio.timeout(60):
            await supervising

    assert await takes(muster) == [("here", 1), ("next", 3)]


@guards(
    "libs/protocol/muster_protocol/fold/writers.py",
    "return by_owner and state.answer is None and (",
    rule="I2",
    replace="return by_owner and (",
)
def test_of_two_answers_the_first_counts() -> None:
    log = planned(task("t"))

    log.own(answer("first"))
    log.own(answer("second"))

    assert log.state.answer == answer("first")


async def test_an_expiry_under_an_old_term_is_written_again(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "timeout_seconds": 1, "max_attempts": 1}])
    await muster.until_log(request, lambda state: "a" in state.tasks and bool(state.tasks["a"].attempts))
    lost = Result(
        request_id=request, task_id="a", attempt=1, status=ResultStatus.FAILED, worker="s1", role="supervisor"
    )
    headers = {
        "sender": "supervisor/s1",
        "kind": "result",
        "schema": "1",
        "term": "999999",
        "Nats-Msg-Id": f"{lost.attempt_id}.s1.1",
    }
    await muster.publish(f"results.{request}", lost.body(), headers)

    answer = await muster.answer(request)

    assert answer.tasks[0].reason == "a gave no result within 1 s"
