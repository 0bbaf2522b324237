"""I6 at the coordinator: only what is stored is a decision, and what a failure cut off is done later."""

import pytest

from muster_bus.buckets.conflicts import conflicts_of, write_conflict
from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Incoming
from muster_bus.read_stream import read_subject
from muster_coordinator.conflicts.evidence import Evidence
from muster_coordinator.conflicts.resolve import Resolver
from muster_protocol.conflict import Conflict, ConflictKind, Side, SideId
from tests.flow.coordinator_harness import ServiceGroup, eventually

ONE = SideId(worker="w1", delivery=1, task_sequence=7)
OTHER = SideId(worker="w2", delivery=2, task_sequence=7)


def _record(group: ServiceGroup, keep: SideId | None = None, *stops: SideId) -> Conflict:
    now = round(group.bus.clock.now(), 3)
    sides = tuple(
        Side(**dict(side), started_at=now, last_sign_at=now + number) for number, side in enumerate((ONE, OTHER))
    )
    return Conflict(
        request_id="r1",
        task_id="a",
        attempt=1,
        kinds=(ConflictKind.STARTED_TWICE,),
        sides=sides,
        keep=keep,
        stops=stops,
        found_at=now,
        updated_at=now,
    )


async def _refused(group: ServiceGroup, record: Conflict, revision: int) -> None:
    """Write a record as a coordinator does that was too late."""
    data = record.model_dump_json(exclude_defaults=True).encode()
    assert await Bucket(group.bus, "conflicts").compare_and_set(record.key, data, revision) is None


async def test_a_refused_write_stops_nobody_that_the_stored_one_keeps(group: ServiceGroup):
    assert await write_conflict(group.bus, _record(group, OTHER, ONE), None)
    await _refused(group, _record(group, ONE, OTHER), 0)

    aborts = await group.until_aborts(2)

    assert {abort.side for abort in aborts} == {ONE}
    (stored,) = await conflicts_of(group.bus, "r1")
    assert (stored.keep, stored.stops) == (OTHER, (ONE,))


async def test_a_refused_write_of_a_coordinator_that_is_gone_is_evidence_only(group: ServiceGroup):
    await _refused(group, _record(group, ONE, OTHER), 5)

    await group.until("/v1/conflicts", lambda found: found["conflicts"])

    (stored,) = await conflicts_of(group.bus, "r1")
    assert {side.id for side in stored.sides} == {ONE, OTHER}
    assert (stored.keep, stored.stops) == (None, ())


async def test_a_conflict_whose_record_was_deleted_is_listed_again(group: ServiceGroup):
    await Bucket(group.bus, "conflicts").delete("r1.a.1")
    await group.plan()
    await group.finished("w1", delivery=1)
    await group.finished("w2", delivery=2)

    found = await group.until("/v1/conflicts", lambda found: found["conflicts"])

    assert [conflict["kinds"] for conflict in found["conflicts"]] == [["finished_twice"]]


async def test_a_record_that_cannot_be_read_is_left_alone(group: ServiceGroup, caplog: pytest.LogCaptureFixture):
    await Bucket(group.bus, "conflicts").put("r1.a.1", b'{"kinds": ["unheard_of"]}')
    written: list[Incoming] = []
    await group.bus.subscribe("$KV.conflicts.>", written.append)
    await group.plan()
    for delivery in (1, 2, 3):
        await group.finished(f"w{delivery}", delivery=delivery)

    async def is_left() -> bool:
        return "left to a newer coordinator" in caplog.text

    await eventually(is_left)
    assert await group.conflicts_after_the_answer() == []
    await group.bus.flush()
    assert written == []
    assert caplog.text.count("left to a newer coordinator") == 1


async def test_workers_that_do_not_answer_are_asked_again(group: ServiceGroup):
    await group.plan()
    await group.started("w1", delivery=1)
    await group.started("w2", delivery=2)

    async def are_asked_again() -> bool:
        stored = await read_subject(group.bus.nc, "control.r1")
        return len([raw for raw in stored if raw.headers["kind"] == "check"]) > 1

    await eventually(are_asked_again)


async def test_an_event_that_was_never_stored_is_published_after_a_restart(group: ServiceGroup):
    await group.close()
    assert await write_conflict(group.bus, _record(group), None)

    await group.open()

    await eventually(lambda: _is_published(group))


async def test_records_that_were_written_while_it_was_cut_off_are_read_again(group: ServiceGroup):
    await group.close()
    resolver = Resolver(group.bus, Evidence())
    assert await resolver.load()
    assert not await resolver.load()
    assert await write_conflict(group.bus, _record(group, OTHER, ONE), None)

    resolver.load_again()

    assert await resolver.load()
    await eventually(resolver.repeat_abort)
    assert [abort.side for abort in await group.until_aborts(1)] == [ONE]


async def _is_published(group: ServiceGroup) -> bool:
    return await group.published_conflicts() == ["a"]
