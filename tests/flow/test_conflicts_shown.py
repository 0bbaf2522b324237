"""Conflicts as people and machines see them: `muster conflicts` without a coordinator, and the API's list in pages."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import provision
from muster_bus.buckets.conflicts import write_conflict
from muster_bus.connection import Bus
from muster_coordinator.conflicts.judge import is_news, judge
from muster_protocol.conflict import Conflict, ConflictKind, Ended, Side
from muster_protocol.sender import Sender
from muster_testing.broker import running_broker
from tests.flow.command_line import Here
from tests.flow.coordinator_harness import SETTINGS, ServiceGroup

FIRST = Side(worker="w1", delivery=1, task_sequence=7, started_at=10.0, last_sign_at=13.0, trace_id="4bf9")
SECOND = Side(worker="w2", delivery=2, task_sequence=7, started_at=12.0, last_sign_at=13.0)
STARTED = Conflict(
    request_id="r1",
    task_id="t",
    attempt=1,
    kinds=(ConflictKind.STARTED_TWICE,),
    sides=(
        FIRST.model_copy(update={"ended": Ended.STOPPED, "ended_at": 13.2, "tokens": 1820, "usd": 0.0125}),
        SECOND.model_copy(update={"ended": Ended.FINISHED, "ended_at": 14.0}),
    ),
    keep=SECOND.id,
    stops=(FIRST.id,),
    why="w1 (message 7, delivery 1) was told to stop: w2 (message 7, delivery 2) has finished it",
    found_at=1_700_000_000.0,
)
SAME = Conflict(
    request_id="r2",
    task_id="a",
    attempt=0,
    kinds=(ConflictKind.SAME_WORK,),
    tasks=("a", "b"),
    why="a, b say the same; each is done, nobody is stopped",
    found_at=1_700_000_000.0,
)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncGenerator[tuple[Server, Bus]]:
    async with running_broker(tmp_path / "broker") as server:
        bus = await Bus.connect(server.url, Sender("tests", "observer"))
        await provision(bus, SETTINGS, ["default"], ["math"])
        yield server, bus
        await bus.close()


async def test_the_command_says_both_sides_the_decision_and_what_the_loser_spent(
    broker: tuple[Server, Bus], tmp_path: Path
):
    server, bus = broker
    here = Here(tmp_path, MUSTER_NATS_URL=server.url)
    assert "no conflict is listed" in (await asyncio.to_thread(here.run, "conflicts")).stdout
    for record in (STARTED, SAME):
        assert await write_conflict(bus, record, None)

    said = (await asyncio.to_thread(here.run, "conflicts", "r1")).stdout
    listed = await asyncio.to_thread(here.document, "conflicts")
    same = await asyncio.to_thread(here.document, "conflicts", "--kind", "same_work")
    wrong = await asyncio.to_thread(here.run, "conflicts", "--kind", "started_twise")
    status = await asyncio.to_thread(here.document, "status")

    assert "r1/t attempt 1  started twice" in said
    assert "worker-w1 (message 7, delivery 1), started at 0.00 s, stopped at 3.20 s, trace 4bf9" in said
    assert "worker-w2 (message 7, delivery 2), started at 2.00 s, finished at 4.00 s" in said
    assert f"decided   {STARTED.why}" in said
    assert "worker-w1 had spent 1,820 tokens, 0.0125 USD" in said
    assert [found["request_id"] for found in listed["conflicts"]] == ["r2", "r1"]
    assert [found["tasks"] for found in same["conflicts"]] == [["a", "b"]]
    assert (wrong.returncode, "started_twice" in wrong.stderr) == (2, True)
    assert status["conflicts"] == 2


def test_these_are_records_that_a_coordinator_leaves_as_they_are():
    for record in (STARTED, SAME):
        judged = judge(record, record.found_at)
        assert judged is not None
        assert not is_news(judged, record)


async def test_the_api_lists_conflicts_in_pages_and_by_filters(broker: tuple[Server, Bus]):
    server, bus = broker
    group = ServiceGroup(server, bus)
    for number in range(5):
        assert await write_conflict(bus, STARTED.model_copy(update={"request_id": f"r{number}"}), None)
    assert await write_conflict(bus, SAME.model_copy(update={"request_id": "same"}), None)
    await group.open()
    try:
        found: list[str] = []
        page = await group.get("/v1/conflicts?limit=4")
        found += [conflict["request_id"] for conflict in page["conflicts"]]
        rest = await group.get(f"/v1/conflicts?limit=4&after={page['next']}")
        found += [conflict["request_id"] for conflict in rest["conflicts"]]

        assert (found, rest["next"]) == (["same", "r4", "r3", "r2", "r1", "r0"], None)
        counts = {
            query: len((await group.get(f"/v1/conflicts?{query}"))["conflicts"])
            for query in ("request=r3", "kind=same_work", "worker=w2", "worker=w9", "task=b", "task=t")
        }
        assert counts == {
            "request=r3": 1,
            "kind=same_work": 1,
            "worker=w2": 5,
            "worker=w9": 0,
            "task=b": 1,
            "task=t": 5,
        }
        assert (await group.get("/v1/overview"))["conflicts"] == 6
        assert (await group.ask("GET", "/v1/conflicts?kind=nonsense"))[0] == 422
    finally:
        await group.close()
