"""I1: two messages with one id are one request, which is answered once, whichever message's holder dies or hangs."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from muster_bus.broker.queues import request_queue
from muster_bus.lease import Delivery
from muster_bus.pull import Pull
from muster_protocol import subjects
from muster_protocol.headers import request_hash
from muster_protocol.messages import Answer, AnswerStatus, Taken
from muster_protocol.sender import Origin, Sender
from muster_supervisor.poison import MAX_INNOCENT_TAKES, MAX_LONE_TAKES
from muster_supervisor.taking.disposition import MAX_KEPT, OVERDUE_SECONDS
from muster_supervisor.taking.signs import SIGN_SECONDS
from muster_testing.waiting import until_asked
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster

REQUESTS = subjects.requests("default")
SOON = 4.0  # seconds, in which a supervisor starts and keeps a copy
DUPLICATES = "services/supervisor/muster_supervisor/taking/duplicates.py"


def body_of(output: str, **more: Any) -> bytes:
    """A request that waits until `go`."""
    orders = json.dumps({"until": "go", "output": output})
    plan = {"tasks": [{"id": "a", "description": orders, "tag": "scripted"}]}
    return json.dumps({"id": "mine", "plan": plan, **more}).encode()


@contextlib.asynccontextmanager
async def held(muster: Muster, body: bytes) -> AsyncGenerator[float]:
    """Somebody holds this request until the end of the block and hangs from then on; yields when it was stored."""
    got: asyncio.Queue[Delivery] = asyncio.Queue()

    async def hold(delivery: Delivery) -> None:
        got.put_nowait(delivery)
        await asyncio.Event().wait()

    await muster.publish(REQUESTS, body, None)
    pull = Pull(muster.bus, request_queue("default"), 1, LEASE_SECONDS, hold)
    await pull.start()
    try:
        yield (await got.get()).time
    finally:
        for handler in await pull.close():
            handler.cancel()
        pull.stop()


async def until_reported(muster: Muster) -> None:
    async def is_there() -> bool:
        return any(b"was used before for another request" in raw.data for raw in await muster.errors())

    await until_asked(is_there, "the sender of the other body is told")


async def stored(muster: Muster) -> list[int]:
    return [raw.sequence for raw in await muster.bus.read(REQUESTS, from_leader=True)]


async def answers(muster: Muster) -> list[str]:
    entries = await muster.entries("mine", Answer)
    return [entry.body.text for entry in entries if isinstance(entry.body, Answer)]


@pytest.mark.parametrize("second", ["same", pytest.param("another", marks=pytest.mark.sweep)])
async def test_a_request_whose_id_came_twice_is_answered_when_one_holder_hangs_and_the_other_is_killed(
    muster: Muster, second: str
) -> None:
    async with held(muster, body_of("same")):
        await muster.start("supervisor", "s1")
        await muster.publish(REQUESTS, body_of(second), None)
        await muster.until_log("mine", lambda state: state.in_flight == 1)
    muster.kill("s1")
    await muster.past_lease()

    await muster.start("supervisor", "s2")
    await muster.until_log("mine", lambda state: state.owner == "s2")
    await muster.start("worker", "w1")
    muster.release("go")
    answer = await muster.answer("mine")
    await muster.until_settled(REQUESTS)

    assert (answer.status, answer.text) == (AnswerStatus.DONE, second)  # the body that was taken first counts
    assert await answers(muster) == [second]
    assert muster.executions("mine") == {"a": 1}
    if second == "another":
        await until_reported(muster)


@guards(DUPLICATES, "if found is Disposition.ANSWERED:", rule="I1", replace="if True:")
async def test_a_message_with_a_used_id_is_reported_at_once_and_acknowledged_only_after_the_answer(
    muster: Muster,
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("supervisor", "s2")
    await muster.start("worker", "w1")
    await muster.publish(REQUESTS, body_of("first"), None)
    await muster.until_log("mine", lambda state: state.in_flight == 1)
    for number in range(3):
        await muster.publish(REQUESTS, body_of(f"other {number}"), None)
    await muster.publish(REQUESTS, b'{"id": "mine", "text": 7}', None)  # no request at all
    await until_reported(muster)
    await muster.past_lease()

    assert len(await stored(muster)) == 5
    muster.release("go")
    answer = await muster.answer("mine")
    await muster.until_settled(REQUESTS)

    assert answer.text == "first"
    assert await answers(muster) == ["first"]
    errors = await muster.errors()
    assert len(errors) == len({json.loads(raw.data)["sequence"] for raw in errors}) == 4


@pytest.mark.parametrize(("step", "status"), [("after:dispatched", "done"), ("before:plan", "failed")])
async def test_a_request_whose_message_is_gone_is_answered_from_its_log_by_whoever_holds_another(
    muster: Muster, step: str, status: str
) -> None:
    await muster.start("supervisor", "s1", die_at=step)
    first = await muster.publish(REQUESTS, body_of("first"), None)
    assert await muster.ended("s1") == 137
    await muster.publish(REQUESTS, body_of("other"), None)
    await muster.bus.nc.jetstream(timeout=5).delete_msg("REQUESTS", first.sequence)  # an operator who cleans up

    await muster.start("worker", "w1")
    await muster.start("supervisor", "s2")
    muster.release("go")
    answer = await muster.answer("mine")
    await muster.until_settled(REQUESTS)

    assert answer.status == status
    assert answer.text == (
        "first" if status == "done" else "its message is gone and it has no plan yet; ask again under another id"
    )
    assert muster.executions("mine") == ({"a": 1} if status == "done" else {})
    await until_reported(muster)


@guards(DUPLICATES, "await self._put_back(self._held[sequence])", rule="I1", replace="pass", seconds=60)
@pytest.mark.sweep
async def test_copies_of_an_open_request_that_are_too_many_to_hold_wait_in_the_queue_for_the_answer(
    muster: Muster,
) -> None:
    await muster.start("supervisor", "s1")
    for _ in range(MAX_KEPT + 20):
        await muster.publish(REQUESTS, body_of("same"), None)

    async def come_again() -> bool:
        info = await muster.bus.nc.jetstream(timeout=5).consumer_info("REQUESTS", "s_default")
        return (info.num_redelivered or 0) >= 19  # all but the kept ones and the lease

    await until_asked(come_again, "the others are put back, and come again", within=30)
    assert len(await stored(muster)) == MAX_KEPT + 20
    await muster.start("worker", "w1")
    muster.release("go")
    await muster.answer("mine")
    await muster.until_settled(REQUESTS)

    assert await answers(muster) == ["same"]


@guards(
    "services/supervisor/muster_supervisor/taking/disposition.py",
    "is_late = is_asked and is_overdue(state, bus.clock.now())",
    rule="I4",
    replace="is_late = False",
    seconds=60,
)
async def test_whoever_keeps_a_copy_answers_when_the_holder_of_the_lease_has_not_long_after_the_deadline(
    muster: Muster,
) -> None:
    async with held(muster, body_of("same")) as stored_at:  # alive, and never a word from it
        (lease,) = await stored(muster)
        taken = Taken(
            instance="silent",
            delivery=1,
            team="default",
            deadline=muster.bus.clock.now() + SOON - OVERDUE_SECONDS,
            request_hash=request_hash(REQUESTS, None, body_of("same")),
            request_sequence=lease,
            stored_at=stored_at,
        )
        await muster.bus.store(taken, Origin("mine", Sender("supervisor", "silent")))
        await muster.start("supervisor", "s1")
        await muster.publish(REQUESTS, body_of("same"), None)

        answer = await muster.answer("mine")
        await muster.until_gone(REQUESTS, lease + 1)
        assert await stored(muster) == [lease]
    await muster.until_settled(REQUESTS)

    assert (await muster.state("mine")).owner == "s1"
    assert answer.status is AnswerStatus.FAILED
    assert await answers(muster) == [answer.text]


@guards(DUPLICATES, "await bus.store(note, ", rule="I4", seconds=40)
async def test_the_deadline_runs_from_the_first_copy_also_if_the_second_was_taken_first(muster: Muster) -> None:
    async with held(muster, body_of("same", deadline_seconds=60)) as first_at:
        await muster.start("supervisor", "s1")
        await muster.publish(REQUESTS, body_of("same", deadline_seconds=60), None)
        await muster.until_log("mine", lambda state: state.in_flight == 1)
        assert (await muster.state("mine")).deadline != pytest.approx(first_at + 60, abs=1e-3)

    await muster.until_log("mine", lambda state: state.deadline == pytest.approx(first_at + 60, abs=1e-3))
    muster.release("go")
    await muster.start("worker", "w1")

    assert (await muster.answer("mine")).status is AnswerStatus.DONE


@guards(
    "services/supervisor/muster_supervisor/run.py",
    "if signs is Signs.NONE:",
    rule="I1",
    replace="if True:",
    case="8",
    seconds=60,
)
@pytest.mark.parametrize("kills", [2, pytest.param(MAX_INNOCENT_TAKES + MAX_LONE_TAKES + 2, marks=pytest.mark.sweep)])
async def test_supervisors_killed_in_a_loop_while_a_long_task_runs_do_not_make_its_request_poison(
    muster: Muster, kills: int
) -> None:
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s0")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")
    for number in range(1, kills + 1):
        muster.kill(f"s{number - 1}")
        await muster.start("supervisor", f"s{number}")
        await muster.until_log(request, lambda state, number=number: state.owner == f"s{number}")

    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}


@pytest.mark.sweep
async def test_supervisors_killed_while_the_loop_of_the_worker_is_blocked_do_not_make_the_request_poison(
    muster: Muster,
) -> None:
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s0")
    request = await muster.submit([{"id": "a", "orders": {"block_until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")
    for number in range(1, 6):
        muster.kill(f"s{number - 1}")
        await muster.start("supervisor", f"s{number}")
        await muster.until_log(request, lambda state, number=number: state.owner == f"s{number}")

    with pytest.raises(TimeoutError):  # it asks the worker, which cannot say a word, and gives nothing up
        async with asyncio.timeout(SIGN_SECONDS * 2):
            await muster.answer(request)
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}
