"""I6: the evidence is there: a start that could not be stored is stored later, and what a loser spent is counted."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.conflict import Ended
from muster_protocol.messages import Started
from muster_testing.messages_server import CannedReply, message, running_messages_server, text, tool_use
from muster_testing.waiting import until_asked
from tests.flow.conflict_tools import Contest, contest
from tests.guards import guards

THINKERS = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scripted, model: claude-sonnet-5-5, persona: You add., tools: [calculate]}
limits: {deadline_seconds: 300}
"""
SPENT = 120  # tokens of a turn


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


def _turns() -> list[CannedReply]:
    """A call of a tool, which is paid for, and a last turn that waits."""
    last = replace(message(text("2")), is_held=True)
    return [message(tool_use("call_1", "calculate", expression="1 + 1"), stop="tool_use"), last]


@guards(
    "services/worker/muster_worker/attempt.py",
    "outcome = stopped(role, reason, self._meter)",
    rule="I6",
    replace="outcome = stopped(role, reason, meter_of(self.task))",
    seconds=60,
)
@pytest.mark.sweep
async def test_what_the_loser_had_spent_on_its_model_is_in_the_conflict_and_in_the_answer(tmp_path: Path):
    """The copy goes on with the first one's turns, whose next turn is refused; then the copy is told to stop."""
    call, last = _turns()
    async with (
        contest(tmp_path, team=THINKERS) as team,
        running_messages_server(call, last, last, last) as server,
    ):
        await asyncio.gather(
            team.start("supervisor", "s1"),
            team.start("worker", "w1", "--slots", "1", env=server.environment),
        )
        request_id = await team.submit([{"id": "t", "description": "add 1 and 1"}])
        await team.until(lambda: len(server.requests) == 2, "the first worker waits for its last turn")
        await team.start("worker", "w2", env=server.environment)
        await team.copy(await team.task_message())
        await team.until(lambda: len(server.requests) == 3, "the second worker waits for the same turn")
        await team.start("coordinator", "c1")
        await team.until_logged("w2", "stopped: ")
        server.released.set()

        answer = await team.answer(request_id)
        found = await team.resolved(request_id, answer)

    assert (Ended.STOPPED, SPENT) in {(side.ended, side.tokens) for side in found.sides if side.worker == "w2"}
    assert (len(server.requests), answer.usage.tokens) == (4, 3 * SPENT)  # the third call was cancelled
