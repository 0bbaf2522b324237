"""I12: SIGTERM hands back what runs, exits 0 within the grace time, and nothing waits for an ack timeout."""

import signal
import time

import pytest

from muster_protocol.messages import Answer, AnswerStatus
from muster_testing import pause, resume
from tests.flow.in_process import put_task, task_of
from tests.guards import guards
from tests.harness import Muster


async def test_a_worker_stopped_with_ten_running_tasks_hands_them_to_its_peer_at_once(patient_muster: Muster) -> None:
    muster = patient_muster
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--slots", "10", grace_seconds=6)
    request = await muster.submit([{"id": f"t{n}", "orders": {"until": "go"}} for n in range(10)])
    await muster.until(lambda: len(muster.traces()) == 10, "all ten run")

    began = time.monotonic()
    muster.signal("w1", signal.SIGTERM)
    assert await muster.ended("w1") == 0
    assert time.monotonic() - began < 15
    muster.release("go")
    await muster.start("worker", "w2", "--slots", "10")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert {result.worker for result in await muster.results(request)} == {"w2"}


async def test_a_worker_finishes_what_ends_within_its_grace(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: len(muster.traces()) == 1, "the task runs")

    muster.signal("w1", signal.SIGTERM)
    muster.release("go")
    assert await muster.ended("w1") == 0

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}


@guards(
    "libs/agent/muster_agent/functions.py",
    "await _in_thread(partial(function, *arguments, **named))",
    rule="I12",
    replace="await asyncio.to_thread(partial(function, *arguments, **named))",
)
async def test_a_plain_tool_that_hangs_does_not_keep_a_worker_from_leaving(muster: Muster) -> None:
    role = '{name: scripted, model: offline, tools: [{use: "tests.misbehaving_role:hang", isolated: false}]}'
    (muster.folder / "team.yaml").write_text(f"team: default\nroles:\n  - {role}\n")
    await muster.start("worker", "w1", grace_seconds=5)
    await put_task(muster, task_of("t"))
    await muster.until((muster.folder / "hanging").exists, "the tool runs")

    muster.signal("w1", signal.SIGTERM)

    assert await muster.ended("w1", within=60) == 0


async def test_a_stopped_supervisor_hands_its_requests_to_its_peer_at_once(patient_muster: Muster) -> None:
    muster = patient_muster
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}, {"id": "b", "dependencies": ["a"]}])
    await muster.until(lambda: len(muster.traces()) == 1, "the task runs")

    muster.signal("s1", signal.SIGTERM)
    assert await muster.ended("s1") == 0
    await muster.start("supervisor", "s2")
    muster.release("go")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1, "b": 1}
    assert len(await muster.entries(request, Answer)) == 1


@pytest.mark.sweep
async def test_many_clean_restarts_do_not_make_a_request_or_task_poison(patient_muster: Muster) -> None:
    muster = patient_muster  # a lease that runs out on a busy machine would count as a take in vain, and rightly
    await muster.start("supervisor", "s0")
    await muster.start("worker", "w0", grace_seconds=5)
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    for number in range(1, 6):
        await muster.until(lambda n=number: muster.executions(request)["a"] == n, "the task runs")
        muster.signal(f"s{number - 1}", signal.SIGTERM)
        muster.signal(f"w{number - 1}", signal.SIGTERM)
        assert await muster.ended(f"s{number - 1}") == 0
        assert await muster.ended(f"w{number - 1}") == 0
        await muster.start("supervisor", f"s{number}")
        await muster.start("worker", f"w{number}", grace_seconds=5)
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE


async def test_a_service_stops_within_its_grace_though_the_broker_hangs(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", grace_seconds=5)
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    pause(muster.broker)
    began = time.monotonic()
    for instance in ("w1", "s1"):
        muster.signal(instance, signal.SIGTERM)
    codes = [await muster.ended(instance, within=50) for instance in ("w1", "s1")]
    resume(muster.broker)

    assert codes == [0, 0]
    assert time.monotonic() - began < 40
