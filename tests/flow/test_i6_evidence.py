"""I6: the evidence is there: a start that could not be stored is stored later, and what a loser spent is counted."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.messages import Started
from muster_testing.waiting import until_asked
from tests.flow.conflict_tools import Contest, contest
from tests.guards import guards


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


@guards(
    "services/worker/muster_worker/confirming.py",
    "await self._bus.publisher.confirm(outgoing, acked)",
    rule="I6",
    replace="await acked if acked else None",
    seconds=60,
)
async def test_a_start_that_a_full_stream_refused_is_stored_when_there_is_room(team: Contest):
    await team.start_all("w1", coordinators=())
    await team.publish("events.another", b"{}", None)
    await team.leave_room_for("EVENTS", messages=1)
    request_id = await team.ask_one(until="go")
    await team.until_running(request_id)
    await team.until_logged("w1", "→ task")
    assert await team.bus.read(subjects.events(request_id), from_leader=True) == []
    assert await _status(team, request_id) == "queued"

    await team.leave_room_for("EVENTS", messages=1000)

    async def is_stored() -> bool:
        stored = await team.bus.read(subjects.events(request_id), from_leader=True)
        return [raw.headers["kind"] for raw in stored] == [Started.kind]

    await until_asked(is_stored, "the start is stored, once")
    assert await _status(team, request_id) == "running"
    team.release("go")
    assert (await team.answer(request_id)).status == "done"


async def _status(team: Contest, request_id: str) -> str:
    (task,) = (await team.client.view(request_id)).as_json()["tasks"]
    return task["status"]
