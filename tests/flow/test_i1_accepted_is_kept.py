"""I1: a request whose publish was acked gets exactly one answer, whatever process dies."""

import signal

import pytest

from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import Answer, AnswerStatus, PlanRecorded
from muster_supervisor.poison import MAX_DOUBTFUL_TAKES
from tests.flow.dying import die_in_turn
from tests.guards import guards
from tests.harness import Muster

DIAMOND = [
    {"id": "a", "orders": {"until": "go"}},
    {"id": "b", "orders": {"until": "go"}},
    {"id": "c", "dependencies": ["a", "b"]},
    {"id": "d", "dependencies": ["c"]},
]


@guards(
    "services/supervisor/muster_supervisor/run.py",
    "self.slot_released.set()  # what follows",
    rule="I1",
    replace=(
        'await owner.bus.nc.publish(owner.lease.reply, b"+ACK"); await owner.bus.flush(); '
        "self.slot_released.set()  # what follows"
    ),
    case="before:plan",
)
@guards(
    "services/supervisor/muster_supervisor/run.py",
    "owner.in_background(lambda: publish_again(owner))",
    rule="I1",
    case="after:reserved",
)
@pytest.mark.parametrize(
    "step",
    [
        "after:taken",
        "before:plan",
        pytest.param("after:plan", marks=pytest.mark.sweep),
        pytest.param("before:reserved", marks=pytest.mark.sweep),
        "after:reserved",
        pytest.param("before:dispatched", marks=pytest.mark.sweep),
        pytest.param("after:dispatched", marks=pytest.mark.sweep),
        "before:answer",
        pytest.param("after:answer", marks=pytest.mark.sweep),
        "before:ack",
    ],
)
async def test_a_supervisor_killed_at_any_step_loses_nothing_and_doubles_nothing(muster: Muster, step: str) -> None:
    if "answer" in step or "ack" in step:  # else work waits: a task that is done is no longer noted as dispatched
        muster.release("go")
    await muster.start("worker", "w1")
    await muster.start("supervisor", "s1", die_at=step)
    request = await muster.submit([dict(task) for task in DIAMOND])
    assert await muster.ended("s1") == 137

    muster.release("go")
    await muster.start("supervisor", "s2")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert len(await muster.entries(request, PlanRecorded)) == 1
    assert len(await muster.entries(request, Answer)) == 1
    assert muster.executions(request) == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert len(await muster.results(request)) == 4
    await muster.until_settled(subjects.requests("default"))


async def test_a_broker_killed_in_the_middle_of_200_tasks_loses_and_doubles_nothing(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    await muster.start("worker", "w2")
    request = await muster.submit([{"id": f"t{n}", "orders": {"sleep": 0.05}} for n in range(200)])
    await muster.until(lambda: len(muster.traces("end")) > 60, "a third is done")

    muster.broker.kill()
    await muster.broker.start()
    answer = await muster.answer(request, within=40)

    assert answer.status is AnswerStatus.DONE
    assert len(await muster.entries(request, Answer)) == 1
    state = await muster.state(request)
    assert all(len(task.attempts) == 1 and task.result is not None for task in state.tasks.values())


async def test_a_worker_killed_in_the_middle_of_a_task_is_replaced(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    muster.kill("w1")
    muster.release("go")
    await muster.start("worker", "w2")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert [result.worker for result in await muster.results(request)] == ["w2"]
    assert answer.tasks[0].attempts == 1


async def test_the_same_request_published_three_times_is_one_request(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    tasks = [{"id": "a"}]

    first = await muster.submit([dict(task) for task in tasks], id="mine")
    answer = await muster.answer(first)
    again = [await muster.submit([dict(task) for task in tasks], id="mine") for _ in range(2)]
    await muster.until_settled(subjects.requests("default"))

    assert again == ["mine", "mine"]
    assert await muster.answer("mine") == answer
    assert muster.executions("mine") == {"a": 1}
    assert len(await muster.entries("mine", Answer)) == 1


async def test_copies_of_one_request_at_two_supervisors_run_once(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("supervisor", "s2")
    await muster.start("worker", "w1")

    for _ in range(4):
        await muster.submit([{"id": "a", "orders": {"sleep": 0.3}}], id="same")
    answer = await muster.answer("same")
    await muster.until_settled(subjects.requests("default"))

    assert answer.status is AnswerStatus.DONE
    assert muster.executions("same") == {"a": 1}
    assert len(await muster.entries("same", Answer)) == 1


async def test_the_same_id_with_another_body_is_an_error_and_the_first_answer_stands(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    await muster.submit([{"id": "a", "orders": {"output": "first"}}], id="mine")
    assert (await muster.answer("mine")).text == "first"

    with pytest.raises(Invalid, match="id: mine was used before for another request"):
        await muster.submit([{"id": "a", "orders": {"output": "second"}}], id="mine")
    await muster.publish("requests.default", b'{"id": "mine", "text": "by hand"}', None)
    await muster.until_settled(subjects.requests("default"))

    assert (await muster.answer("mine")).text == "first"
    errors = [raw.data.decode() for raw in await muster.errors()]
    assert any("was used before for another request" in error for error in errors)


@guards(
    "services/supervisor/muster_supervisor/run.py",
    "if reason := poison_reason(owner.state, owner.delivery.number, is_read=True):",
    rule="I1",
)
async def test_a_request_that_kills_its_supervisor_every_time_is_answered_as_poison(muster: Muster) -> None:
    request = await muster.submit([{"id": "a"}])
    await die_in_turn(muster, "after:taken")

    await muster.start("supervisor", "healthy")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert "poison" in answer.text


@pytest.mark.parametrize("hangs", [3, pytest.param(MAX_DOUBTFUL_TAKES + 3, marks=pytest.mark.sweep)])
async def test_repeated_hangs_of_a_supervisor_do_not_make_a_request_poison(muster: Muster, hangs: int) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}])
    await muster.until_log(request, lambda state: state.in_flight == 1)

    for _ in range(hangs):
        before = (await muster.state(request)).delivery
        muster.signal("s1", signal.SIGSTOP)
        await muster.past_lease()
        muster.signal("s1", signal.SIGCONT)
        await muster.until_log(request, lambda state, before=before: state.delivery > before)
    await muster.start("worker", "w1")

    assert (await muster.answer(request)).status is AnswerStatus.DONE


@guards("services/worker/muster_worker/history.py", "if await is_poison(self._bus, task, delivery):", rule="I1")
async def test_a_task_that_kills_its_worker_every_time_fails_and_its_neighbour_goes_on(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "bomb", "orders": {"die": True}}, {"id": "good", "tag": "second"}])
    for number in range(3):
        await muster.start("worker", f"dying-{number}", "--role", "scripted")
        assert await muster.ended(f"dying-{number}") == 137

    await muster.start("worker", "healthy")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    assert {task.id: task.status for task in answer.tasks} == {"bomb": "failed", "good": "done"}
    assert muster.executions(request) == {"bomb": 3, "good": 1}
