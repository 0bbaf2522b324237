"""I12: what a stopped service held is with the next one at once, and the take is not counted against it."""

import asyncio
import signal

import pytest

from muster_agent.team.file import load_team
from muster_bus.broker.queues import request_queue, task_queue
from muster_bus.log import read_log
from muster_bus.process.service import stop_within
from muster_bus.read_stream import read_subject
from muster_protocol.messages import AnswerStatus, ResultStatus, Taken
from muster_supervisor.taking.notes import note_returned
from muster_worker.events import Events
from tests.flow.in_process import connected, next_deliveries, put_task, task_of
from tests.guards import guards
from tests.harness import Muster


@guards(
    "services/worker/muster_worker/worker.py",
    "            for handler in handlers:\n                handler.cancel()",
    rule="I12",
    replace="",
)
@guards(
    "services/worker/muster_worker/attempt.py",
    "            self.delivery.lease.hand_back(delay_seconds)",
    rule="I12",
    replace="            pass",
)
@guards(
    "services/worker/muster_worker/attempt.py",
    "await self._resources.events.handed_back(self.begun, self.task.attempt_id, self._gives_way)",
    rule="I12",
)
async def test_tasks_of_a_stopped_worker_are_handed_back_with_a_note(patient_muster: Muster) -> None:
    muster = patient_muster
    await muster.start("worker", "w1", grace_seconds=5)
    for n in range(3):
        await put_task(muster, task_of(f"t{n}", description='{"until": "go"}'))
    await muster.until(lambda: len(muster.traces()) == 3, "all three run")

    muster.signal("w1", signal.SIGTERM)
    assert await muster.ended("w1") == 0

    again = await next_deliveries(muster, task_queue(["scripted"]), 3, within=20)
    assert [delivery.number for delivery in again] == [2, 2, 2]
    events = await read_subject(muster.bus.nc, "events.r1", from_leader=True)
    assert [event.headers["kind"] for event in events].count("handed_back") == 3


@guards(
    "services/worker/muster_worker/worker.py",
    "timeout=max(0.0, grace_seconds - HAND_BACK_SECONDS - LEAVE_SECONDS)",
    rule="I12",
    replace="timeout=0.0",
)
async def test_what_ends_within_the_grace_of_a_stopped_worker_is_finished_there(patient_muster: Muster) -> None:
    muster = patient_muster
    await muster.start("worker", "w1")
    await put_task(muster, task_of("t", description='{"sleep": 0.7}'))
    await muster.until(lambda: len(muster.traces()) == 1, "it runs")

    muster.signal("w1", signal.SIGTERM)
    assert await muster.ended("w1") == 0

    assert [result.worker for result in await muster.results("r1")] == ["w1"]


@guards("services/supervisor/muster_supervisor/owner.py", "self.lease.hand_back(delay_seconds)", rule="I12")
@guards(
    "services/supervisor/muster_supervisor/owner.py", "await self.append(self._taken(handed_back=True))", rule="I12"
)
async def test_the_requests_of_a_stopped_supervisor_are_handed_back_with_a_note(patient_muster: Muster) -> None:
    muster = patient_muster
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}])
    await muster.until_log(request, lambda state: state.in_flight == 1)

    muster.signal("s1", signal.SIGTERM)
    assert await muster.ended("s1") == 0

    (again,) = await next_deliveries(muster, request_queue("default"), 1, within=20)
    assert again.number == 2
    state = await muster.state(request)
    assert (state.owner, state.unproductive_takes(again.number)) == (None, 0)


@guards(
    "services/worker/muster_worker/attempt.py",
    "except asyncio.CancelledError:  # aborted or stopped while the failure was not stored yet",
    rule="I12",
    replace="except ZeroDivisionError:  # aborted or stopped while the failure was not stored yet",
    seconds=40,
)
@pytest.mark.sweep
async def test_a_failure_that_waits_for_room_is_handed_back_by_a_stopped_worker(patient_muster: Muster) -> None:
    muster = patient_muster
    team = muster.folder / "team.yaml"
    team.write_text(team.read_text().replace("muster_testing.roles:scripted", "tests.misbehaving_role:misbehave"))
    await muster.publish("results.another", b"{}", None)
    await muster.leave_room_for("RESULTS", messages=1)
    await muster.start("worker", "w1", grace_seconds=6)
    await put_task(muster, task_of("t", description='{"action": "cancel its own task"}'))
    await muster.until(lambda: "results.r1  not stored for" in muster.service_log("w1"), "its failure waits for room")

    muster.signal("w1", signal.SIGTERM)
    assert await muster.ended("w1") == 0

    (again,) = await next_deliveries(muster, task_queue(["scripted"]), 1, within=20)
    assert again.number == 2


@guards(
    "services/supervisor/muster_supervisor/intake.py",
    "await note_returned(self._resources.bus, self._resources.team.team, delivery)  # stopped before",
    rule="I12",
    replace="raise  # stopped before",
    seconds=30,
)
@pytest.mark.sweep
async def test_a_request_that_waits_to_be_refused_is_handed_back_by_a_stopped_supervisor(
    patient_muster: Muster,
) -> None:
    muster = patient_muster
    await muster.publish("results.another", b"{}", None)
    await muster.leave_room_for("RESULTS", messages=1)
    await muster.start("supervisor", "s1", grace_seconds=6)
    await muster.publish("requests.default", b"no request", None)
    await muster.until(lambda: "refused" in muster.service_log("s1"), "it is being refused")

    muster.signal("s1", signal.SIGTERM)
    assert await muster.ended("s1") == 0

    (again,) = await next_deliveries(muster, request_queue("default"), 1, within=20)
    assert again.number == 2


@guards("services/supervisor/muster_supervisor/taking/notes.py", "await bus.store(taken_note(", rule="I12")
async def test_a_request_that_was_only_handed_back_unseen_is_no_suspect(patient_muster: Muster) -> None:
    muster = patient_muster
    request = await muster.submit([{"id": "a"}])
    team = load_team(muster.folder / "team.yaml")
    async with connected(muster, "s0") as bus:
        for _ in range(3):
            (delivery,) = await next_deliveries(muster, request_queue("default"), 1, within=20)
            await note_returned(bus, team.team, delivery)
            delivery.lease.hand_back()

    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    log = await read_log(muster.bus, request)
    assert not any(entry.body.alone for entry in log if isinstance(entry.body, Taken))


@guards("services/worker/muster_worker/events.py", "await self.handed_back(delivery, attempt)", rule="I12")
async def test_a_task_that_was_only_handed_back_unseen_is_no_poison(patient_muster: Muster) -> None:
    muster = patient_muster
    await put_task(muster, task_of("t"))
    full = Events(muster.bus)
    for _ in range(3):
        (delivery,) = await next_deliveries(muster, task_queue(["scripted"]), 1, within=20)
        await full.returned_unread(delivery)
        delivery.lease.hand_back()

    await muster.start("worker", "w1")
    await muster.until_log("r1", lambda state: state.last_sequence > 0)

    assert [result.status for result in await muster.results("r1")] == [ResultStatus.DONE]


@guards(
    "libs/bus/muster_bus/process/service.py",
    "async with asyncio.timeout(seconds):",
    rule="I12",
    replace="async with asyncio.timeout(None):",
)
async def test_a_step_of_a_stop_that_hangs_or_breaks_does_not_keep_the_next_from_being_done() -> None:
    async def breaks() -> None:
        raise RuntimeError("a bug")

    await stop_within(asyncio.sleep(3600), 0.1, "what hangs")
    await stop_within(breaks(), 0.1, "what breaks")
