"""I6: a second message of an attempt, wherever and whenever it comes, is one conflict, and one result counts."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_bus.publish import Stored
from muster_protocol import subjects
from muster_protocol.conflict import ConflictKind, Ended
from muster_protocol.headers import headers_of
from muster_protocol.messages import Started
from muster_protocol.sender import Origin, Sender
from muster_testing.waiting import until_asked
from tests.flow.conflict_tools import WITHIN, Contest, contest, endings, start_two
from tests.guards import guards

BOTH = ["dispatched_twice", "started_twice"]


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


@guards(
    "services/worker/muster_worker/attempt.py",
    "self._resources.events.refused(self.task.attempt_id, delivery, why)",
    rule="I6",
    seconds=60,
)
async def test_a_copy_that_reaches_the_same_worker_is_refused_and_reported(team: Contest):
    await team.start_all("w1")
    request_id = await team.ask_one(until="go")
    await team.until_running(request_id)
    copy = await team.copy(await team.task_message())

    found = await team.conflict(request_id, lambda record: len(record.sides) > 1)
    await team.until_gone(subjects.tasks("scripted"), copy)
    team.release("go")
    answer = await team.answer(request_id)

    assert list(found.kinds) == ["dispatched_twice"]
    assert [side.task_sequence for side in found.sides if side.ended is Ended.REFUSED] == [copy]
    assert (answer.status, answer.conflicts) == ("done", 1)
    assert await team.aborts(request_id) == []
    assert team.executions(request_id) == {"t": 1}
    assert len(await team.published(request_id)) == 1


async def test_a_copy_that_reaches_another_worker_is_stopped_and_the_first_finishes(team: Contest):
    request_id = await start_two(team)
    copy = await team.copy(await team.task_message())
    await team.until_logged("w2", "stopped: ")
    await team.until_gone(subjects.tasks("scripted"), copy)  # the loser of another message acks it
    team.release("go")

    found = await team.resolved(request_id, await team.answer(request_id))

    assert list(found.kinds) == BOTH
    assert endings(found) == {"w1": Ended.FINISHED, "w2": Ended.STOPPED}
    assert await team.seconds_to_abort(request_id, "w2") < 1.0
    assert [(stop.worker, stop.task_sequence) for stop in found.stops] == [("w2", copy)]
    assert (await team.state(request_id)).tasks["t"].superseded[0].worker == "w2"


async def test_a_copy_under_the_same_id_after_the_window_of_the_broker_is_stopped(tmp_path: Path):
    async with contest(tmp_path, duplicates_seconds=0.2) as team:
        request_id = await start_two(team)
        message = await team.task_message()

        async def is_stored() -> bool:
            return not (await _store_again(team, message.subject, message.data, message.headers)).is_duplicate

        await until_asked(is_stored, "the broker has forgotten the id")
        await team.until_logged("w2", "stopped: ")
        team.release("go")

        found = await team.resolved(request_id, await team.answer(request_id))

        assert list(found.kinds) == BOTH


async def _store_again(team: Contest, subject: str, body: bytes, headers: dict[str, str]) -> Stored:
    own = {name: value for name, value in headers.items() if not name.startswith("Nats-") or name == "Nats-Msg-Id"}
    return await team.bus.publisher.store(subject, body, own, give_up_after=5)


@guards(
    "services/worker/muster_worker/history.py",
    "is_suspect = has_other_id(task, delivery.headers) or may_be_copy(",
    rule="I6",
    replace="is_suspect = may_be_copy(",
    seconds=60,
)
async def test_a_copy_after_the_result_or_the_answer_is_refused_within_three_seconds_too(team: Contest):
    await team.start_all("w1", "w2")
    request_id = await team.submit([{"id": "t", "orders": {"until": "one"}}, {"id": "u", "orders": {"until": "two"}}])
    await team.until_running(request_id, 2)
    messages = {raw.headers["Nats-Msg-Id"]: raw for raw in await team.bus.read(subjects.tasks("scripted"))}
    message = messages[f"{request_id}.t.1"]
    team.release("one")
    await team.until_log(request_id, lambda state: state.tasks["t"].result is not None)
    await team.copy(message)  # after the result
    found = await team.conflict(request_id, lambda record: any(side.ended == "refused" for side in record.sides))
    team.release("two")
    answer = await team.answer(request_id)
    await team.copy(message)  # after the answer
    after = await team.conflict(request_id, lambda record: len(record.sides) > len(found.sides))
    await team.until_quiet()

    assert list(found.kinds) == list(after.kinds) == ["dispatched_twice"]
    assert answer.conflicts == 1
    assert team.executions(request_id) == {"t": 1, "u": 1}
    assert await team.aborts(request_id) == []


async def test_a_broker_that_forgot_an_id_in_a_restart_gives_one_conflict(team: Contest):
    await team.start_all("w1")
    request_id = await team.ask_one(until="go")
    await team.until_running(request_id)
    message = await team.task_message()
    team.release("go")
    await team.answer(request_id)
    await team.until_quiet()
    team.broker.kill()
    await team.broker.start()
    await team.bus.connected.wait()

    await team.copy(message, f"{request_id}.t.1")  # of an acknowledged message nothing is left, not even its id
    found = await team.conflict(request_id)
    await team.until_quiet()

    assert list(found.kinds) == ["dispatched_twice"]
    assert team.executions(request_id) == {"t": 1}


async def test_a_broker_that_forgot_an_id_while_the_request_is_open_gives_one_conflict(team: Contest):
    await team.start_all("w1")
    then = {"id": "u", "dependencies": ["t"], "orders": {"until": "two"}}
    request_id = await team.submit([{"id": "t", "orders": {"until": "go"}}, then])
    await team.until_running(request_id)
    message = await team.task_message()
    team.release("go")
    await team.until_running(request_id, 2)
    await team.until_gone(message.subject, message.sequence)
    team.broker.kill()
    await team.broker.start()
    await team.bus.connected.wait()

    await team.copy(message, f"{request_id}.t.1")
    found = await team.conflict(request_id)
    team.release("two")
    answer = await team.answer(request_id)

    assert list(found.kinds) == ["dispatched_twice"]
    assert (answer.status, answer.conflicts) == ("done", 1)
    assert team.executions(request_id) == {"t": 1, "u": 1}
    assert await team.aborts(request_id) == []


@guards(
    "services/coordinator/muster_coordinator/conflicts/judge.py",
    "found.add(ConflictKind.FINISHED_TWICE)",
    rule="I6",
    replace="pass",
    seconds=60,
)
async def test_an_attempt_that_two_workers_finished_unseen_is_listed_and_one_result_counts(team: Contest):
    then = {"id": "u", "dependencies": ["t"], "orders": {"until": "two"}}
    request_id = await start_two(team, then, coordinators=())
    await team.copy(await team.task_message())
    await team.until_running(request_id, 2)
    team.release("go")
    await team.until_log(request_id, lambda state: bool(state.tasks["t"].superseded))

    await team.start("coordinator", "c1")
    found = await team.conflict(request_id, lambda record: ConflictKind.FINISHED_TWICE in record.kinds)
    team.release("two")
    answer = await team.answer(request_id)

    counted, superseded = (await team.results(request_id))[:2]
    assert endings(found) == {"w1": Ended.FINISHED, "w2": Ended.FINISHED}
    assert (found.keep, found.stops) == (None, ())
    assert (found.succeeded and found.succeeded.worker) == counted.worker
    assert (answer.status, answer.conflicts) == ("done", 1)
    assert await team.aborts(request_id) == []
    assert len(await team.published(request_id)) == 1
    state = await team.state(request_id)
    assert state.tasks["t"].result is not None
    assert [lost.worker for lost in state.tasks["t"].superseded] == [superseded.worker]


@pytest.mark.sweep
async def test_two_coordinators_of_which_one_is_killed_come_to_one_conflict(team: Contest):
    request_id = await start_two(team, coordinators=("c1", "c2"))
    await team.copy(await team.task_message())
    await team.conflict(request_id)
    team.kill("c1")
    await team.until_logged("w2", "stopped: ")
    team.release("go")

    found = await team.resolved(request_id, await team.answer(request_id))

    assert list(found.kinds) == BOTH


@pytest.mark.sweep
async def test_ten_thousand_forged_starts_stop_nobody_and_hide_no_conflict(team: Contest):
    await team.start_all()
    await team.start("worker", "w1")  # with a free slot for each copy
    forged = await team.ask_one(until="go")
    await team.until_running(forged)
    for number in range(10_000):
        request_id, task = (forged, "t") if number < 400 else ("nobody", f"t{number % 100}")
        _forge(team, request_id, task, number)
    await team.bus.flush(10)
    later = await team.ask_one(until="go")
    await team.until_running(later)
    waiting = await team.bus.read(subjects.tasks("scripted"))
    await team.copy(next(raw for raw in waiting if later in raw.headers["Nats-Msg-Id"]))

    found = await team.conflict(later)
    team.release("go")
    answers = [await team.answer(request_id, WITHIN) for request_id in (forged, later)]

    assert list(found.kinds) == ["dispatched_twice"]
    assert [answer.status for answer in answers] == ["done", "done"]
    assert "w1" not in {abort.side.worker for abort in await team.aborts(forged) if abort.side}
    flooded = await team.conflict(forged)
    assert (len(flooded.sides), flooded.more_sides) == (8, True)


def _forge(team: Contest, request_id: str, task: str, number: int) -> None:
    worker = f"ghost-{number}"
    started = Started(
        request_id=request_id,
        task_id=task,
        attempt=1,
        worker=worker,
        role="scripted",
        delivery=1,
        task_sequence=1_000_000 + number,
    )
    headers = headers_of(started, Origin(request_id, Sender("worker", worker)))
    team.bus.nc.post(subjects.events(request_id), started.body(), headers=headers)
