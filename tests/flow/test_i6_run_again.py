"""I6: a copy of a done task that no worker could refuse runs again: it alone is stopped, and nothing changes."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_bus.read_stream import Raw
from muster_protocol.conflict import Conflict, ConflictKind, Ended
from muster_testing.waiting import until_asked
from tests.flow.conflict_tools import Contest, contest, is_over, start_two
from tests.guards import guards

AHEAD_SECONDS = 30.0  # as if it had been reserved only now: then no worker looks it up


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path, duplicates_seconds=0.2) as running:
        yield running


async def run_again(team: Contest, message: Raw) -> int:
    """Store a copy that a worker takes for the first; its place in TASKS, once a worker runs it."""
    request_id = message.headers["request-id"]
    before, places = team.executions(request_id).total(), list[int]()

    async def is_stored() -> bool:
        stored = await team.store_copy(message.subject, message, -AHEAD_SECONDS)
        if not stored.is_duplicate:
            places.append(stored.sequence)
        return bool(places)

    await until_asked(is_stored, "the broker has forgotten the id")
    await team.until_running(request_id, before + 1)
    return places[0]


def assert_only_the_copy_stops(found: Conflict, copy: int) -> None:
    assert [stop.task_sequence for stop in found.stops] == [copy]
    assert [side.task_sequence for side in found.sides if side.ended is Ended.STOPPED] == [copy]
    assert [side.id for side in found.sides if side.ended is Ended.FINISHED] == [found.succeeded]


@guards(
    "services/coordinator/muster_coordinator/conflicts/judge.py",
    "        return [side for side in running if (side.last_sign_at or 0.0) >= latest_start]",
    rule="I6",
    replace="        return []",
    seconds=60,
)
async def test_a_copy_that_runs_after_the_answer_is_stopped_and_the_answer_stays(team: Contest):
    await team.start_all("w1", "w2")
    request_id = await team.ask_one(until="go")
    await team.until_running(request_id)
    message = await team.task_message()
    team.release("go")
    answer = await team.answer(request_id)
    await team.until_quiet()
    assert await team.found(request_id) == []
    team.hold("go")

    copy = await run_again(team, message)
    found = await team.conflict(request_id, is_over)
    await team.until_quiet()

    assert {ConflictKind.STARTED_AFTER_SUCCESS, ConflictKind.STARTED_AFTER_ANSWER} <= set(found.kinds)
    assert_only_the_copy_stops(found, copy)
    assert {abort.side for abort in await team.aborts(request_id)} == set(found.stops)
    assert team.executions(request_id) == {"t": 2}
    assert len(await team.published(request_id)) == 1
    assert await team.answer(request_id) == answer
    assert (answer.status, answer.conflicts) == ("done", 0)


async def test_a_copy_that_runs_after_its_success_is_stopped_before_the_answer(team: Contest):
    await team.start_all("w1", "w2")
    request_id = await team.submit([{"id": "t", "orders": {"until": "one"}}, {"id": "u", "orders": {"until": "two"}}])
    await team.until_running(request_id, 2)
    message = await team.task_message(f"{request_id}.t.1")
    team.release("one")
    await team.until_log(request_id, lambda state: state.tasks["t"].result is not None)
    team.hold("one")

    copy = await run_again(team, message)
    found = await team.conflict(request_id, is_over)
    team.release("two")
    answer = await team.answer(request_id)
    await team.until_quiet()

    assert ConflictKind.STARTED_AFTER_SUCCESS in found.kinds
    assert ConflictKind.STARTED_AFTER_ANSWER not in found.kinds
    assert_only_the_copy_stops(found, copy)
    assert {abort.side for abort in await team.aborts(request_id)} == set(found.stops)
    assert team.executions(request_id) == {"t": 2, "u": 1}
    assert len(await team.published(request_id)) == 1
    assert (answer.status, answer.conflicts) == ("done", 1)
    superseded = (await team.state(request_id)).tasks["t"].superseded
    assert [(result.worker, result.status) for result in superseded] == [(found.stops[0].worker, "cancelled")]


@guards(
    "services/coordinator/muster_coordinator/conflicts/judge.py",
    "untaken = [side for side in record.sides if not side.worker]",
    rule="I6",
    replace="untaken: list[Side] = []",
    seconds=60,
)
async def test_a_copy_is_resolved_although_the_start_of_the_first_is_no_longer_stored(team: Contest):
    request_id = await start_two(team, coordinators=())
    await team.bus.nc.jetstream(timeout=5).purge_stream("EVENTS")  # as if many thousand others had come since
    await team.start("coordinator", "c1")
    await team.copy(await team.task_message())

    found = await team.conflict(request_id, lambda record: bool(record.stops))
    await team.until(lambda: "stopped: " in team.service_log("w1") + team.service_log("w2"), "one has stopped")
    team.release("go")
    await team.resolved(request_id, await team.answer(request_id))

    assert len(found.stops) == 1
    assert team.executions(request_id) == {"t": 2}
