"""I3: a task whose result is stored is never executed again, also after kill -9 of the broker."""

import asyncio
import signal

from muster_bus.broker.queues import task_queue
from muster_bus.connection import Bus
from muster_bus.read_stream import read_subject
from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus, ResultStatus
from muster_protocol.sender import Sender
from muster_testing import until_asked
from muster_testing.proxy import running_proxy
from muster_worker.history import STALE_SECONDS, History, Verdict, read_from_reservation
from tests.bus.broker_tools import Recorder
from tests.flow.in_process import connected, delivery_of, hang_while, put_result, task_of
from tests.guards import guards
from tests.harness import Muster


@guards(
    "services/worker/muster_worker/history.py",
    "if settled_by(entries, task.attempt_id) is not None:",
    rule="I3",
)
@guards(
    "services/worker/muster_worker/attempt.py",
    "seconds = time.monotonic() - began",
    rule="I3",
    replace="seconds = time.monotonic() - began; self.delivery.lease.ack()",
)
async def test_a_worker_killed_between_result_and_ack_does_not_make_the_task_run_again(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", die_at="before:ack")
    request = await muster.submit([{"id": "a"}, {"id": "b", "dependencies": ["a"]}])
    assert await muster.ended("w1") == 137

    await muster.start("worker", "w2")
    answer = await muster.answer(request)
    await muster.until_settled(subjects.tasks("scripted"))

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1, "b": 1}


async def test_a_task_stored_again_after_a_broker_restart_is_recognised_though_it_is_delivery_one(
    muster: Muster,
) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}, {"id": "hold", "tag": "second", "orders": {"until": "go"}}])
    await muster.until_log(
        request, lambda state: bool(state.tasks) and not state.dispatch_unconfirmed and state.in_flight == 2
    )
    (copy,) = await read_subject(muster.bus.nc, "tasks.scripted")
    await muster.start("worker", "w1")
    await muster.until_log(request, lambda state: state.tasks["a"].result is not None)
    await muster.until_settled(subjects.tasks("scripted"))

    muster.broker.kill()
    await muster.broker.start()
    again = await muster.store_copy("tasks.scripted", copy, age_seconds=5.0)
    await muster.until_settled(subjects.tasks("scripted"))
    muster.release("go")
    answer = await muster.answer(request)

    assert again.sequence > copy.sequence  # stored anew, not taken for the first one
    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request)["a"] == 1


@guards(
    "services/worker/muster_worker/history.py",
    "return is_again or is_forgotten or is_old or is_retry",
    rule="I3",
    replace="return is_again or is_old or is_retry",
)
async def test_a_task_that_a_restarted_broker_delivers_a_moment_later_is_recognised(patient_muster: Muster) -> None:
    muster = patient_muster
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    muster.signal("w1", signal.SIGSTOP)
    request = await muster.submit([{"id": "a"}, {"id": "hold", "tag": "second", "orders": {"until": "go"}}])
    await muster.until_log(request, lambda state: state.in_flight == 2 and not state.dispatch_unconfirmed)
    (copy,) = await read_subject(muster.bus.nc, "tasks.scripted")
    muster.signal("w1", signal.SIGCONT)
    await muster.until_log(request, lambda state: state.tasks["a"].result is not None)
    await muster.until_settled(subjects.tasks("scripted"))

    muster.broker.kill()
    await muster.broker.start()
    await muster.store_copy("tasks.scripted", copy, age_seconds=0.0)
    await muster.until_settled(subjects.tasks("scripted"))
    muster.release("go")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request)["a"] == 1


@guards(
    "services/worker/muster_worker/history.py",
    "return is_again or is_forgotten or is_old or is_retry",
    rule="I3",
    replace="return is_again or is_forgotten or is_retry",
)
async def test_a_worker_that_hung_with_a_task_in_its_socket_does_not_do_what_a_peer_has_done(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--role", "second", "--slots", "1")
    request = await _delivered_to_a_hanging_worker(muster)
    await muster.start("worker", "w2", "--role", "second")
    await muster.until_log(request, lambda state: state.tasks["a"].result is not None)

    muster.signal("w1", signal.SIGCONT)
    await muster.start("worker", "w3", "--role", "scripted")
    answer = await muster.answer(request)
    await muster.until_settled(subjects.tasks("second"))

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1, "b": 1}


async def _delivered_to_a_hanging_worker(muster: Muster) -> str:
    """A request whose task the broker has sent to w1 while w1 hung: its open pull must outlive the dispatch."""
    for _ in range(20):
        muster.signal("w1", signal.SIGSTOP)  # before the request: else a quick w1 has done the task by now
        request = await muster.submit([{"id": "a", "tag": "second"}, {"id": "b"}])
        await muster.until_log(request, lambda state: state.in_flight == 2 and not state.dispatch_unconfirmed)
        if (await muster.backlog(task_queue(["second"]))).working == 1 and not muster.executions(request):
            return request
        muster.signal("w1", signal.SIGCONT)
        await muster.client.cancel(request)
        await muster.answer(request)
        await muster.until_settled(subjects.tasks("second"))
    raise AssertionError("no pull of w1 was open when it was stopped")


@guards(
    "services/worker/muster_worker/history.py",
    "max(0, task.reserved_sequence - 1), from_leader=True",
    rule="I3",
    replace="max(0, task.reserved_sequence - 1)",
)
@guards("libs/bus/muster_bus/read_stream.py", "if from_leader:", rule="I3")
async def test_whether_a_task_is_done_is_asked_of_the_leader_of_its_log(muster: Muster) -> None:
    """A replica that lags would say no, and the task would run again."""
    asked = await Recorder.on(muster.bus, "$JS.API.STREAM.MSG.GET.RESULTS")
    task = task_of("a")
    assert not await read_from_reservation(muster.bus, task)
    await put_result(muster.bus, task.request_id, "a", ResultStatus.DONE)

    assert await read_from_reservation(muster.bus, task)
    assert len(asked.messages) >= 2


@guards(
    "services/worker/muster_worker/history.py",
    "if time.monotonic() - asked_at < fresh_seconds(delivery.number):",
    rule="I3",
    replace="if True:",
)
async def test_a_worker_that_hangs_while_it_looks_a_task_up_looks_again_before_it_runs_it(muster: Muster) -> None:
    task = task_of("a")

    async def peer_stores_a_result() -> None:
        async with connected(muster, "peer") as bus:
            await put_result(bus, task.request_id, "a", ResultStatus.DONE)
            await asyncio.sleep(4 * STALE_SECONDS)

    async with running_proxy(muster.broker.port) as proxy:
        bus = await Bus.connect(proxy.url, Sender("worker", "here"))

        async def has_asked() -> bool:
            return b"STREAM.MSG.GET.RESULTS" in proxy.sent

        judging = asyncio.create_task(History(bus, lambda _: False).judge(task, delivery_of(bus, 2, 60.0)))
        await until_asked(has_asked, "the worker has asked", every=0.0)  # at once: the reply must find it hanging
        hang_while(peer_stores_a_result)
        verdict = await judging
        await bus.close()

    assert verdict is Verdict.DONE_ALREADY


@guards("services/worker/muster_worker/history.py", "return Verdict.UNSURE", rule="I3", replace="return Verdict.RUN")
@guards(
    "services/worker/muster_worker/attempt.py",
    "elif verdict is Verdict.UNSURE:",
    rule="I1",
    replace="elif False:",
    seconds=60,
)
async def test_a_task_that_cannot_be_looked_up_quickly_enough_is_handed_back_and_done_later(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    async with running_proxy(muster.broker.port) as proxy:
        await muster.start("worker", "w1", env={"MUSTER_NATS_URL": proxy.url})
        proxy.delay_seconds = STALE_SECONDS / 2

        request = await muster.submit([{"id": "a", "orders": {"fail": "once", "times": 1}}], deadline_seconds=25)
        answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 2}  # a further attempt is always looked up
    assert "attempt 2  handed back: the broker was too slow" in muster.service_log("w1")


async def test_a_second_copy_of_a_task_that_runs_here_is_not_started(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until_log(request, lambda state: state.in_flight == 1 and not state.dispatch_unconfirmed)
    (task,) = await read_subject(muster.bus.nc, "tasks.scripted")
    await muster.start("worker", "w1")
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    headers = {name: value for name, value in task.headers.items() if not name.startswith("Nats-")}
    copy = await muster.publish("tasks.scripted", task.data, headers)

    await muster.until_gone("tasks.scripted", copy.sequence)
    muster.release("go")
    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}
