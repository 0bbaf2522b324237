"""I4: finished work is never thrown away, also that of a worker that was cut off and given up."""

from collections.abc import AsyncGenerator

import pytest

from muster_protocol import subjects
from muster_protocol.messages import Abort, AnswerStatus, Check
from muster_protocol.sender import Origin, Sender
from muster_testing.proxy import Proxy, running_proxy
from muster_testing.waiting import until_asked
from tests.guards import guards
from tests.harness import Muster

TIMEOUT_SECONDS = 3.0  # the further attempt must not end by its own before the first is heard


@pytest.fixture
async def wire(muster: Muster) -> AsyncGenerator[Proxy]:
    """What the first worker is connected through."""
    async with running_proxy(muster.broker.port) as proxy:
        yield proxy


async def start_worker_behind(wire: Proxy, muster: Muster, *options: str) -> None:
    await muster.start("worker", "w1", *options, env={"MUSTER_NATS_URL": wire.url})


async def finish_while_cut_off(wire: Proxy, muster: Muster, request: str) -> None:
    """Task `a` runs in the first worker, which is cut off and then finishes."""
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the first attempt runs")
    await wire.close()
    muster.release("go")
    await muster.until(lambda: bool(muster.traces("end")), "the first attempt has finished, unheard")
    (muster.folder / "go").unlink()  # whoever tries the task again waits for ever


@guards("services/supervisor/muster_supervisor/run.py", "stop_overtaken(owner)", rule="I4")
async def test_a_worker_that_was_given_up_and_then_stores_its_success_ends_the_task(muster: Muster, wire: Proxy):
    await muster.start("supervisor", "s1")
    await start_worker_behind(wire, muster)
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}, "timeout_seconds": TIMEOUT_SECONDS}])
    await finish_while_cut_off(wire, muster, request)
    await muster.until_log(request, lambda state: len(state.tasks["a"].attempts) == 2)
    await muster.start("worker", "w2")
    await muster.until(lambda: muster.executions(request)["a"] > 1, "a further attempt runs")

    await wire.open()
    answer = await muster.answer(request)

    assert (answer.status, answer.output) == (AnswerStatus.DONE, f"a of {request}")
    await muster.until_logged("w2", "stopped: an earlier attempt has succeeded")
    assert len(muster.traces("end")) == 1
    await muster.until_settled("tasks.scripted")


async def test_what_was_skipped_for_a_task_is_done_when_its_success_comes_late(muster: Muster, wire: Proxy):
    await muster.start("supervisor", "s1")
    await start_worker_behind(wire, muster, "--role", "scripted")
    request = await muster.submit(
        [
            {"id": "a", "orders": {"until": "go"}, "timeout_seconds": 1.5, "max_attempts": 1},
            {"id": "b", "dependencies": ["a"]},
            {"id": "meanwhile", "tag": "second"},
        ]
    )
    await finish_while_cut_off(wire, muster, request)
    await muster.until_log(request, lambda state: state.tasks["b"].phase == "skipped")

    await wire.open()
    await muster.until_log(request, lambda state: state.tasks["b"].phase == "done")
    await muster.start("worker", "w2", "--role", "second")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert answer.output == {"b": f"b of {request}", "meanwhile": f"meanwhile of {request}"}


@guards(
    "services/worker/muster_worker/attempt.py",
    "if self._is_settling or (self._has_outcome and keeps is None):",
    rule="I4",
    replace="if self._is_settling:",
    seconds=30,
)
async def test_an_attempt_that_is_given_up_while_its_success_finds_no_room_is_still_done(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}, "max_attempts": 1}], deadline_seconds=10)
    await muster.until_log(request, lambda state: state.in_flight == 1 and not state.dispatch_unconfirmed)
    await muster.until(lambda: muster.executions(request)["a"] == 1, "it runs")
    await muster.leave_room_for("RESULTS", messages=1)
    muster.release("go")
    await muster.until(lambda: bool(muster.traces("end")), "it has finished, and is not stored")
    owner = Origin(request, Sender("supervisor", "s1"), term=(await muster.state(request)).term)
    starts = len(await muster.bus.read(subjects.events(request)))

    given_up = (("a", 1),)
    await muster.bus.store(Abort(request_id=request, attempts=given_up, reason="its timeout was reached"), owner)
    await muster.bus.store(Check(request_id=request, attempts=given_up), owner)

    async def is_heard() -> bool:
        return len(await muster.bus.read(subjects.events(request))) > starts

    await until_asked(is_heard, "the worker has heard both, and says that it is at work", within=5)
    await muster.leave_room_for("RESULTS", messages=1000)

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}
