"""Attacks that once broke something: full streams, odd outputs, stubborn roles, models that raise anything."""

import json
import signal
import time
from typing import Any

import pytest

from muster_agent.models.port import Ask, ComposeBrief, PlanBrief, RefineBrief, Reply
from muster_agent.models.scripted import Scripted
from muster_bus.read import read_subject
from muster_protocol.messages import AnswerStatus, Result, ResultStatus, Taken
from tests.flow.in_process import Silent, put_task, supervising, task_of
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scripted, run: "tests.misbehaving_role:misbehave"}
  - {name: second, run: "tests.misbehaving_role:block"}
limits: {in_flight: 32, deadline_seconds: 60}
"""


def orders(**order: Any) -> str:
    return json.dumps(order)


async def start_misbehaving(muster: Muster, *options: str, grace_seconds: float = 10.0) -> None:
    (muster.folder / "team.yaml").write_text(TEAM)
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1", *options, grace_seconds=grace_seconds)


@guards("libs/bus/muster_bus/receive.py", "if about != last_token(message.subject):", rule="I10")
async def test_an_abort_on_another_request_s_subject_stops_nothing(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "it runs")

    abort = json.dumps({"request_id": request}).encode()
    await muster.publish("control.another", abort, {"sender": "supervisor/s9", "kind": "abort"})
    await muster.answer(await muster.submit([{"id": "later"}]))  # by now the worker has heard it
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}


async def test_a_cancel_that_was_never_stored_stops_nothing(muster: Muster) -> None:
    await muster.client.cancel("nobody")
    await muster.leave_room_for("CONTROL", messages=1)
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "it runs")

    cancel = json.dumps({"request_id": request}).encode()
    await muster.bus.nc.publish(f"control.{request}", cancel, headers={"sender": "client/c1", "kind": "cancel"})
    await muster.bus.flush()
    await muster.answer(await muster.submit([{"id": "later"}]))  # by now the worker has heard it
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}


# ── full streams ─────────────────────────────────────────────────────────────────────────────────────────────────────


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


async def test_five_hundred_requests_that_wait_for_room_in_tasks_hold_up_no_answer(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.leave_room_for("TASKS", messages=1)
    waiting = [await muster.submit([{"id": "a"}]) for _ in range(560)]
    for request in waiting[:520]:  # more than the publisher's places, and the oldest are taken first
        await muster.until_log(request, lambda state: state.in_flight == 1)

    request = await muster.submit([{"id": "a"}], deadline_seconds=3)
    answer = await muster.answer(request)

    assert "the deadline was reached" in answer.gaps


async def test_takeovers_that_wait_for_room_in_tasks_keep_nobody_from_being_taken(muster: Muster) -> None:
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


# ── too much and odd output ──────────────────────────────────────────────────────────────────────────────────────────


ODD = {
    "itself": (orders(action="cancel itself"), "cancelled"),
    "own-task": (orders(action="cancel its own task"), "the role cancelled its own task"),
    "base": (orders(action="raise", what="what is no Exception"), "GeneratorExit"),
    "name": (orders(action="raise", what="a name that is no Unicode"), "FileNotFoundError"),
    "deep": (orders(action="nest", levels=230), "recursion"),
    "deeper": (orders(action="nest", levels=600), "recursion"),
    "number": (orders(action="count far"), "digits"),
    "output": (orders(action="say much", characters=70_000_000), "the most is"),
    "error": (orders(action="complain much", characters=70_000_000), "ValueError"),
}


async def test_a_result_that_cannot_travel_is_a_failure_that_says_why(muster: Muster) -> None:
    await start_misbehaving(muster)

    request = await muster.submit([{"id": name, "description": ODD[name][0], "max_attempts": 1} for name in ODD])
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.FAILED
    assert [task.id for task in answer.tasks if ODD[task.id][1] not in (task.reason or "")] == []
    assert muster.executions(request) == dict.fromkeys(ODD, 1)


async def test_an_answer_that_is_too_large_to_travel_is_cut_and_given(muster: Muster) -> None:
    await start_misbehaving(muster)
    much = orders(action="say much", characters=12_000_000)

    request = await muster.submit([{"id": f"a{n}", "description": much} for n in range(3)])  # in text and output
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert "cut here" in answer.text


async def test_a_task_that_would_take_in_too_much_fails_and_the_rest_is_answered(muster: Muster) -> None:
    await start_misbehaving(muster)
    much = orders(action="say much", characters=25_000_000)
    tasks = [{"id": f"a{n}", "description": much} for n in range(3)]

    everything = [*tasks, {"id": "all", "dependencies": ["a0", "a1", "a2"]}]
    request = await muster.submit(everything, deadline_seconds=100)  # a busy machine takes its time over 75 MB
    answer = await muster.answer(request, within=105)

    assert answer.status is AnswerStatus.PARTIAL
    assert "the most is" in (answer.tasks[-1].reason or "")


# ── stubborn roles ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_role_that_blocks_a_thread_does_not_keep_a_worker_from_leaving(muster: Muster) -> None:
    await start_misbehaving(muster, grace_seconds=5)
    request = await muster.submit([{"id": "a", "tag": "second", "description": orders(seconds=60)}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    muster.signal("w1", signal.SIGTERM)

    assert await muster.ended("w1") == 0


async def test_a_role_that_refuses_to_be_cancelled_does_not_keep_a_worker_from_leaving(muster: Muster) -> None:
    await start_misbehaving(muster, grace_seconds=5)
    request = await muster.submit([{"id": "a", "description": orders(action="stay")}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    muster.signal("w1", signal.SIGTERM)

    assert await muster.ended("w1") == 0


async def test_every_slot_can_hold_a_role_that_blocks(muster: Muster) -> None:
    await start_misbehaving(muster, "--slots", "40", "--role", "second")
    tasks = [{"id": f"a{n}", "tag": "second", "description": orders(seconds=90)} for n in range(32)]

    request = await muster.submit(tasks)

    await muster.until(lambda: len(muster.executions(request)) == 32, "all run at once")


async def test_a_signal_is_heard_while_a_service_waits_for_its_streams(muster: Muster) -> None:
    await muster.bus.nc.jetstream(timeout=5).delete_consumer("REQUESTS", "s_default")
    muster.spawn("supervisor", "s1")
    await muster.until(lambda: "waiting for consumer" in muster.service_log("s1"), "it waits")

    muster.signal("s1", signal.SIGTERM)

    assert await muster.ended("s1") == 0


# ── models that raise anything ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("broken", [RefineBrief, ComposeBrief])
async def test_a_model_that_raises_anything_costs_no_finished_work(muster: Muster, broken: type) -> None:
    def script(ask: Ask) -> Reply | Exception:
        return KeyError("content") if isinstance(ask.brief, broken) else Reply("{}")

    await muster.start("worker", "w1")
    async with supervising(muster, Scripted(script)):
        request = await muster.submit([{"id": "a", "orders": {"fail": "at first", "times": 1}}, {"id": "b"}])
        answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE


async def test_a_planner_that_raises_anything_is_named_in_the_answer(muster: Muster) -> None:
    def script(ask: Ask) -> Reply | Exception:
        assert isinstance(ask.brief, PlanBrief)
        return KeyError("content")

    async with supervising(muster, Scripted(script)):
        answer = await muster.answer(await muster.client.submit("plan this"))

    assert answer.status is AnswerStatus.FAILED
    assert "KeyError" in answer.text


async def test_supervisors_stopped_while_they_plan_do_not_make_a_request_poison(patient_muster: Muster) -> None:
    muster = patient_muster
    request = await muster.client.submit("plan this")
    for take in range(1, 6):
        async with supervising(muster, Silent()):
            await muster.until_log(request, lambda state, take=take: state.delivery == take)

    state = await muster.state(request)
    assert state.answer is None
    assert state.unproductive_takes(6) == 0
    assert sum(entry.body.handed_back for entry in await muster.log(request) if isinstance(entry.body, Taken)) == 5


# ── the same thing twice ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_expiry_that_we_wrote_in_a_lost_term_does_not_swallow_the_next(muster: Muster) -> None:
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


async def test_a_deadline_that_the_log_would_not_live_to_see_is_refused(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    body = b'{"text": "compare three clouds", "deadline_seconds": 1000000000}'

    answer = await muster.answer(muster.id_of(await muster.publish("requests.default", body, None), body))

    assert answer.status is AnswerStatus.FAILED
    assert "deadline_seconds" in answer.text
