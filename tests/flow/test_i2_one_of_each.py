"""I2: one plan, one counted result per attempt, one answer: by compare-and-set and the fold, not by luck."""

import signal

from muster_protocol.messages import Answer, AnswerStatus, PlanRecorded, Taken
from tests.guards import guards
from tests.harness import Muster


async def test_a_supervisor_paused_past_its_lease_writes_nothing_that_counts(muster: Muster) -> None:
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s1")
    request = await muster.submit(
        [{"id": "a", "orders": {"until": "go"}}, {"id": "b", "dependencies": ["a"]}, {"id": "c", "dependencies": ["b"]}]
    )
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the first task runs")
    muster.signal("s1", signal.SIGSTOP)
    await muster.start("supervisor", "s2")
    await muster.until_log(request, lambda state: state.owner == "s2")

    muster.signal("s1", signal.SIGCONT)
    muster.release("go")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1, "b": 1, "c": 1}
    assert len(await muster.entries(request, PlanRecorded)) == 1
    (given,) = await muster.entries(request, Answer)
    state = await muster.state(request)
    assert (given.term, given.sender) == (state.term, f"supervisor/{state.owner}")  # s2, unless that hung as well


@guards("services/supervisor/muster_supervisor/intake.py", "run.on_redelivery(delivery)", rule="I2")
async def test_a_lone_supervisor_paused_past_its_lease_goes_on_without_a_second_run(muster: Muster) -> None:
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}, {"id": "b", "dependencies": ["a"]}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the first task runs")

    muster.signal("s1", signal.SIGSTOP)
    await muster.past_lease()
    muster.signal("s1", signal.SIGCONT)
    await muster.until_log(request, lambda state: state.delivery > 1)
    muster.release("go")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1, "b": 1}
    assert {entry.body.instance for entry in await muster.entries(request, Taken) if isinstance(entry.body, Taken)} == {
        "s1"
    }


async def test_a_worker_paused_past_its_ack_wait_finishes_second_and_is_not_counted(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}, {"id": "b", "dependencies": ["a"]}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the first worker runs it")
    muster.signal("w1", signal.SIGSTOP)
    await muster.start("worker", "w2")
    await muster.until(lambda: muster.executions(request)["a"] == 2, "the second worker runs it")

    muster.release("go")
    answer = await muster.answer(request)
    muster.signal("w1", signal.SIGCONT)
    await muster.until(
        lambda: "✓ result" in muster.service_log("w1") or "■ task" in muster.service_log("w1"), "w1 is done too"
    )

    assert answer.status is AnswerStatus.DONE
    state = await muster.state(request)
    assert state.tasks["a"].result is not None
    assert state.tasks["a"].result.worker == "w2"
    assert muster.executions(request)["b"] == 1
