"""I4 and I5: a stream that takes nothing more costs what needs it, not the answer and not the other tasks."""

import time

import pytest

from muster_protocol.fold import TaskPhase
from muster_protocol.messages import AnswerStatus
from tests.flow.in_process import put_task, task_of
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster

SLACK = LEASE_SECONDS + 2.0


async def fill(muster: Muster, stream: str, subject: str) -> None:
    await muster.publish(subject, b"{}", {"sender": "tests/observer", "kind": "error"})
    await muster.leave_room_for(stream, messages=1)


@guards(
    "services/supervisor/muster_supervisor/steps/expire.py",
    'owner.in_background(lambda: stop(owner, step.attempt_id, attempt.task_sequence, "its timeout was reached"))',
    rule="I4",
    replace='await stop(owner, step.attempt_id, attempt.task_sequence, "its timeout was reached")',
)
async def test_attempts_that_expire_while_control_is_full_do_not_cost_the_deadline(muster: Muster) -> None:
    await fill(muster, "CONTROL", "control.another")
    await muster.start("supervisor", "s1")
    began = time.monotonic()

    tasks = [{"id": f"t{n}", "timeout_seconds": 1, "max_attempts": 1} for n in range(30)]
    request = await muster.submit(tasks, deadline_seconds=6)
    answer = await muster.answer(request)

    assert time.monotonic() - began < 6 + SLACK
    assert {task.reason for task in answer.tasks} == {f"t{n} gave no result within 1 s" for n in range(30)}


@guards("libs/bus/muster_bus/reports.py", "if self._late:", rule="I4")
async def test_entries_that_cannot_be_reported_while_errors_is_full_do_not_cost_the_deadline(muster: Muster) -> None:
    await fill(muster, "ERRORS", "errors")
    await muster.start("supervisor", "s1")
    began = time.monotonic()

    request = await muster.submit([{"id": "a"}], deadline_seconds=5)
    await muster.until_log(request, lambda state: state.in_flight == 1)
    for _ in range(8):
        await muster.publish(f"results.{request}", b"garbage", {"sender": "worker/w", "kind": "result"})
    await muster.answer(request)

    assert time.monotonic() - began < 5 + SLACK


@guards(
    "services/supervisor/muster_supervisor/steps/dispatch.py",
    "owner.in_background(lambda: publish(owner, ours))",
    rule="I5",
    replace="await publish(owner, ours)",
)
async def test_a_task_that_no_stream_takes_holds_up_no_other(muster: Muster) -> None:
    team = muster.folder / "team.yaml"
    newcomer = '  - {name: newcomer, run: "muster_testing.roles:scripted"}\nlimits:'  # in the team, and not provisioned
    team.write_text(team.read_text().replace("limits:", newcomer))
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--role", "scripted")

    tasks = [{"id": "new", "tag": "newcomer"}, {"id": "a"}, {"id": "b", "dependencies": ["a"]}]
    request = await muster.submit(tasks, deadline_seconds=8)
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    assert {task.id: task.status for task in answer.tasks} == {"new": "cancelled", "a": "done", "b": "done"}


async def test_a_full_object_store_is_waited_for_by_the_task_that_needs_it_alone(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    half = {"output": "y" * 300_000, "until": "go"}  # two of them are more than a message carries by itself
    request = await muster.submit(
        [
            {"id": "a", "orders": half},
            {"id": "b", "orders": half},
            {"id": "both", "dependencies": ["a", "b"]},
            {"id": "after", "dependencies": ["a"]},
        ],
        deadline_seconds=100,
    )
    await muster.until_log(request, lambda state: state.in_flight == 2)
    await muster.leave_room_for("OBJ_bodies", messages=1)

    muster.release("go")
    await muster.until_log(request, lambda state: state.tasks["after"].phase is TaskPhase.DONE)
    await muster.leave_room_for("OBJ_bodies", messages=1000)

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert "supervising it failed" not in muster.service_log("s1")


@guards(
    "services/supervisor/muster_supervisor/carry_out.py",
    "return task_id in self._owner.publishing",
    rule="I4",
    replace="return False",
    seconds=30,
)
@pytest.mark.sweep
async def test_a_task_that_waits_for_room_loses_no_attempt_meanwhile(muster: Muster) -> None:
    await muster.publish("tasks.second", b"{}", None)
    await muster.leave_room_for("TASKS", messages=1)
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", "--role", "scripted")
    request = await muster.submit([{"id": "a", "timeout_seconds": 1, "max_attempts": 2}])
    await muster.until(
        lambda: "tasks.scripted  not stored for" in muster.service_log("s1"), "it waits for five seconds"
    )

    await muster.leave_room_for("TASKS", messages=1000)

    assert (await muster.answer(request)).status is AnswerStatus.DONE


@guards(
    "services/supervisor/muster_supervisor/steps/dispatch.py",
    "stored = await _while_ours(owner, _stored(owner, outgoing))",
    rule="I4",
    replace="stored = await _while_ours(owner, owner.bus.store_all([message for _, _, message in outgoing]))",
)
async def test_a_task_that_the_broker_refuses_for_good_has_failed_and_its_neighbours_go_on(muster: Muster) -> None:
    js = muster.bus.nc.jetstream(timeout=5)
    config = (await js.stream_info("TASKS")).config
    config.max_msg_size = 50_000
    await js.update_stream(config)
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    request = await muster.submit([{"id": "big", "description": "{}\n" + "x" * 100_000}, {"id": "a"}, {"id": "b"}])
    answer = await muster.answer(request)

    assert {task.id: task.status for task in answer.tasks} == {"big": "failed", "a": "done", "b": "done"}
    assert "message size exceeds maximum allowed" in (answer.tasks[0].reason or "")


@pytest.mark.sweep
async def test_a_full_control_stream_does_not_hold_up_the_answer(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    await muster.client.cancel("nobody")
    await muster.leave_room_for("CONTROL", messages=1)

    began = time.monotonic()
    request = await muster.submit([{"id": "a", "orders": {"until": "never"}}, {"id": "b"}], deadline_seconds=6)
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.PARTIAL
    assert time.monotonic() - began < 6 + LEASE_SECONDS + 2


async def test_a_cancel_is_heard_while_tasks_is_full(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await put_task(muster, task_of("in-the-way"))
    await muster.leave_room_for("TASKS", messages=1)
    request = await muster.submit([{"id": "a"}, {"id": "b"}], deadline_seconds=100)
    await muster.until_log(request, lambda state: state.in_flight == 2)

    await muster.client.cancel(request, "changed my mind")

    assert (await muster.answer(request)).status is AnswerStatus.CANCELLED


async def test_a_full_errors_stream_keeps_no_request_from_its_answer(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    await muster.publish("errors", b"{}", {"sender": "tests/observer", "kind": "error"})
    await muster.leave_room_for("ERRORS", messages=1)

    bad = muster.id_of(await muster.publish("requests.default", b"garbage", None), b"garbage")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.publish(f"results.{request}", b"garbage", None)
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert (await muster.answer(bad)).status is AnswerStatus.FAILED


@pytest.mark.sweep
async def test_five_hundred_requests_that_wait_for_room_in_tasks_hold_up_no_answer(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.leave_room_for("TASKS", messages=1)
    waiting = [await muster.submit([{"id": "a"}]) for _ in range(560)]
    for request in waiting[:520]:  # more than the publisher's places, and the oldest are taken first
        await muster.until_log(request, lambda state: state.in_flight == 1)

    request = await muster.submit([{"id": "a"}], deadline_seconds=3)
    answer = await muster.answer(request)

    assert "the deadline was reached" in answer.gaps


async def test_takeovers_blocked_by_a_full_tasks_stream_do_not_block_new_requests(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.leave_room_for("TASKS", messages=1)
    waiting = [await muster.submit([{"id": "a"}]) for _ in range(70)]
    for request in waiting:
        await muster.until_log(request, lambda state: state.in_flight == 1)
    muster.kill("s1")

    await muster.start("supervisor", "s2")
    await muster.past_lease()
    request = await muster.submit([{"id": "a"}], deadline_seconds=3)

    assert "the deadline was reached" in (await muster.answer(request)).gaps
