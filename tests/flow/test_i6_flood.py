"""I6: while thousands of made-up events come in, a real conflict is resolved, and the coordinator stays ready."""

import asyncio
import secrets
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from muster_bus.broker.embedded import free_port
from muster_protocol.conflict import Ended
from muster_protocol.headers import headers_of
from muster_protocol.messages import HandedBack, Message, Refused, Result, ResultStatus, Started
from muster_protocol.sender import Origin, Sender
from muster_testing.waiting import until_asked
from tests.flow.conflict_tools import WITHIN, Contest, contest, endings, start_two

EVENTS = 10_000
MINUTE = 60.0
BURST_SECONDS = 0.1
RESOLVED_SECONDS = 5.0  # from the start of the copy until it is told to stop, on a machine that is busy with the flood
READY_SECONDS = 1.0  # for one answer of `/readyz`, on a machine that is busy with the flood
RESTART_SECONDS = 30.0  # from a start until it is ready, of which a busy machine takes most for the imports
FAR = 1_000_000
Forged = Callable[[str, str, int], Message]


def _started(request_id: str, worker: str, number: int) -> Message:
    place = number if number % 8 else FAR + number  # messages before and after the real ones
    return Started(
        request_id=request_id,
        task_id="t",
        attempt=1,
        worker=worker,
        role="scripted",
        delivery=1,
        task_sequence=place,
    )


def _refused(request_id: str, worker: str, number: int) -> Message:
    return Refused(request_id=request_id, task_id="t", attempt=1, worker=worker, delivery=1, task_sequence=number)


def _handed_back(request_id: str, worker: str, number: int) -> Message:
    return HandedBack(request_id=request_id, task_id="t", attempt=1, worker=worker, delivery=1, task_sequence=number)


def _result(request_id: str, worker: str, number: int) -> Message:
    """Of the very attempt, but one that decides nothing: it was stopped."""
    return Result(
        request_id=request_id,
        task_id="t",
        attempt=1,
        status=ResultStatus.CANCELLED,
        worker=worker,
        role="scripted",
        delivery=1,
        task_sequence=number % 16,
    )


KINDS: tuple[Forged, ...] = (_started, _refused, _handed_back, _result)


async def pour(team: Contest, request_id: str, events: int, seconds: float) -> None:
    """Forge so many events in so much time, half of them about this request."""
    per_burst = max(1, round(events * BURST_SECONDS / seconds))
    for first in range(0, events, per_burst):
        for number in range(first, min(first + per_burst, events)):
            worker, about = f"ghost-{number}", request_id if number % 8 < 4 else f"nobody-{number % 100}"
            forged = KINDS[number % len(KINDS)](about, worker, number)
            origin = Origin(about, Sender("worker", worker), nonce=secrets.token_hex(4))
            team.bus.nc.post(forged.subject_for(origin), forged.body(), headers=headers_of(forged, origin))
        if first >= events / 2:
            team.release("half")
        await team.bus.flush(10)
        await asyncio.sleep(BURST_SECONDS)  # the flood has a pace


async def until_ready(port: int) -> None:
    """Ask a coordinator that starts until it is ready; each answer comes soon."""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=READY_SECONDS):
                return True
        except urllib.error.HTTPError:
            return False  # not yet
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                return False  # not listening yet
            raise

    await until_asked(lambda: asyncio.to_thread(ask), "the coordinator is ready", RESTART_SECONDS)


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Contest]:
    async with contest(tmp_path) as running:
        yield running


async def test_a_conflict_is_resolved_in_a_flood_of_made_up_events(team: Contest):
    request_id = await start_two(team)
    async with asyncio.TaskGroup() as group:
        flood = group.create_task(pour(team, request_id, EVENTS, MINUTE))
        copy = await copy_in_the_flood(team, request_id)
        flood.cancel()

    await assert_resolved(team, request_id, copy)


@pytest.mark.sweep
async def test_a_conflict_is_resolved_while_ten_thousand_made_up_events_come_in_a_minute(team: Contest):
    port = str(free_port())
    request_id = await start_two(team, coordinators=())
    await team.start("coordinator", "c1", "--port", port)
    async with asyncio.TaskGroup() as group:
        flood = group.create_task(pour(team, request_id, EVENTS, MINUTE))
        copy = await copy_in_the_flood(team, request_id)
        await team.until(lambda: team.folder.joinpath("half").exists(), "half of the flood has come", MINUTE)
        team.kill("c1")
        team.spawn("coordinator", "c1", "--port", port)
        await until_ready(int(port))
        assert not flood.done()

    await until_ready(int(port))
    await assert_resolved(team, request_id, copy)


async def copy_in_the_flood(team: Contest, request_id: str) -> int:
    """Once more sides are known than are kept, have a copy of the task run; wait until it is stopped."""
    await team.conflict(request_id, lambda record: record.more_sides)
    copy = await team.copy(await team.task_message())
    await team.until_logged("w2", "stopped: ", WITHIN)
    return copy


async def assert_resolved(team: Contest, request_id: str, copy: int) -> None:
    team.release("go")
    found = await team.resolved(request_id, await team.answer(request_id))
    assert [(stop.worker, stop.task_sequence) for stop in found.stops] == [("w2", copy)]
    assert (found.keep and found.keep.worker, endings(found)["w1"]) == ("w1", Ended.FINISHED)
    assert team.executions(request_id) == {"t": 2}
    assert await team.seconds_to_abort(request_id, "w2") < RESOLVED_SECONDS
