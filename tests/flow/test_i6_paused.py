"""I6: a worker that hung past its ack wait and comes back, and one that died and does not."""

import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_protocol.conflict import ConflictKind
from tests.flow.conflict_tools import Contest, contest, unended
from tests.guards import guards


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


@guards(
    "services/worker/muster_worker/attempt.py",
    "if self._keeps == self.delivery.sequence:",
    rule="I6",
    replace="if False:",
    seconds=60,
)
async def test_a_paused_worker_that_comes_back_is_told_to_stop_and_the_other_finishes(team: Contest):
    await team.start_all("w1", "w2")
    request_id = await team.ask_one(until="go")
    first = team.worker_of((await team.until_running(request_id))[0], "w1", "w2")
    await team.until_logged(first, "→ task")
    team.signal(first, signal.SIGSTOP)
    second = team.worker_of((await team.until_running(request_id, 2))[1], "w1", "w2")
    await team.until_logged(second, "→ task")

    team.signal(first, signal.SIGCONT)
    await team.conflict(request_id, lambda record: bool(record.stops))
    await team.conflict(request_id, lambda record: bool(record.stops) and not unended(record))
    assert await team.task_message()  # it is the other's by now: who stops must not ack it
    team.release("go")
    found = await team.resolved(request_id, await team.answer(request_id))

    assert found.kinds == (ConflictKind.STARTED_TWICE,)
    assert (found.keep and found.keep.worker, [stop.worker for stop in found.stops]) == (second, [first])
    assert {side.worker: side.ended for side in found.sides} == {first: "stopped", second: "finished"}
    assert await team.seconds_to_abort(request_id, first, second) < 1.0


async def test_a_handover_after_kill_9_is_no_conflict(team: Contest):
    await team.start_all("w1", "w2")
    request_id = await team.ask_one(until="go")
    first = team.worker_of((await team.until_running(request_id))[0], "w1", "w2")
    await team.until_logged(first, "→ task")
    team.kill(first)
    await team.start("worker", first, "--slots", "2")  # the same name, and a new process
    await team.until_running(request_id, 2)

    team.release("go")
    answer = await team.answer(request_id)

    assert answer.status == "done"
    assert answer.conflicts == 0
    assert await team.published(request_id) == []
    assert await team.aborts(request_id) == []
