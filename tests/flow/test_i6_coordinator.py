"""I6 at the coordinator: what workers and owners write becomes one conflict, one decision and one abort."""

from typing import Any

from muster_bus.buckets.conflicts import write_conflict
from muster_bus.buckets.kv import Bucket
from muster_bus.read_stream import read_subject
from muster_protocol.conflict import Conflict, ConflictKind, Side, SideId
from muster_protocol.messages import HandedBack
from tests.flow.coordinator_harness import ServiceGroup, eventually


def _summary(found: Any) -> list[tuple[list[str], list[str]]]:
    return [(conflict["kinds"], sorted(side["worker"] for side in conflict["sides"])) for conflict in found]


async def test_two_messages_of_one_attempt_that_were_both_started_are_one_conflict(group: ServiceGroup):
    await group.plan()
    await group.started("w1", task_sequence=7)
    await group.started("w2", task_sequence=8)
    await group.started("w2", task_sequence=8)

    await group.until("/v1/conflicts", lambda found: found["conflicts"])

    async def is_published() -> bool:
        return bool(await group.published_conflicts())

    await eventually(is_published)
    found = _summary(await group.conflicts_after_the_answer())
    assert found == [(["dispatched_twice", "started_twice"], ["w1", "w2"])]
    events = await read_subject(group.bus.nc, "events.r1")
    assert [raw.headers["sender"] for raw in events if raw.headers["kind"] == "conflict"] == ["coordinator/c1"]


async def test_a_redelivery_is_a_conflict_once_the_earlier_worker_shows_that_it_runs(group: ServiceGroup):
    await group.plan()
    await group.started("w1", delivery=1)
    await group.started("w2", delivery=2)
    await Bucket(group.bus, "workers").put("w1", b"{}")  # it lives, but perhaps it does not run the attempt any more
    await group.bus.flush()
    assert await group.conflicts_now() == []

    await group.started("w1", delivery=1)

    await group.until("/v1/conflicts", lambda found: found["conflicts"])
    assert _summary(await group.conflicts_after_the_answer()) == [(["started_twice"], ["w1", "w2"])]


async def test_two_live_sides_get_one_decision_and_the_loser_is_told_until_it_stops(group: ServiceGroup):
    for worker in ("w1", "w2"):
        await Bucket(group.bus, "workers").put(worker, b"{}")
    await group.plan()
    message = await group.task()
    await group.started("w1", delivery=1, task_sequence=message)
    await group.started("w2", delivery=2, task_sequence=message)
    await group.until_checked()
    await group.started("w1", delivery=1, task_sequence=message)
    await group.started("w2", delivery=2, task_sequence=message)

    found = await group.until("/v1/conflicts", lambda found: found["conflicts"] and found["conflicts"][0]["stops"])
    aborts = await group.until_aborts(2)  # without effect it is repeated

    (conflict,) = found["conflicts"]
    assert (conflict["keep"]["worker"], [stop["worker"] for stop in conflict["stops"]]) == ("w2", ["w1"])
    assert {(abort.side.worker, abort.keeps) for abort in aborts if abort.side} == {("w1", message)}


async def test_an_abort_is_sent_again_after_a_restart_of_the_coordinator(group: ServiceGroup):
    side = SideId(worker="w1", delivery=1, task_sequence=7)
    now = round(group.bus.clock.now(), 3)
    record = Conflict(
        request_id="r1",
        task_id="a",
        attempt=1,
        kinds=(ConflictKind.STARTED_TWICE,),
        sides=(Side(worker="w1", delivery=1, task_sequence=7, started_at=now, last_sign_at=now),),
        stops=(side,),
        found_at=now,
        updated_at=now,
    )
    await group.close()
    assert await write_conflict(group.bus, record, None)

    await group.open()

    (abort,) = (await group.until_aborts(1))[:1]
    assert abort.side == side


async def test_an_attempt_finished_by_two_workers_is_one_conflict(group: ServiceGroup):
    await group.plan()
    await group.finished("w1", delivery=1)
    await group.finished("w2", delivery=2)

    assert _summary(await group.conflicts_after_the_answer()) == [(["finished_twice"], ["w1", "w2"])]


async def test_a_timeout_written_by_the_owner_is_not_a_conflict(group: ServiceGroup):
    await group.plan()
    await group.finished("s1", sender="supervisor")
    await group.finished("w1")

    assert await group.conflicts_after_the_answer() == []


async def test_a_handover_to_another_worker_is_no_conflict(group: ServiceGroup):
    await group.plan()
    await group.started("w1", delivery=1)
    await group.started("w2", delivery=2)
    await group.finished("w2", delivery=2)

    assert await group.conflicts_after_the_answer() == []


async def test_an_attempt_that_was_handed_back_may_be_started_by_another(group: ServiceGroup):
    await group.plan()
    await group.started("w1", delivery=1)
    back = HandedBack(request_id="r1", task_id="a", attempt=1, worker="w1", delivery=1)
    await group.publish(back, "w1")
    await group.started("w2", delivery=2)
    await Bucket(group.bus, "workers").put("w1", b"{}")
    await group.finished("w2", delivery=2)

    assert await group.conflicts_after_the_answer() == []


async def test_requests_and_conflicts_from_before_the_start_are_shown(group: ServiceGroup):
    await group.close()
    await group.plan()
    await group.started("w1", task_sequence=7)
    await group.started("w2", task_sequence=8)
    await group.finished("w1")
    await group.finished("w2")
    await group.answer()
    await group.bus.publisher.store("requests.default", b'{"id": "later", "text": "hi"}', {})

    await group.open()

    overview = await group.until("/v1/overview", lambda overview: overview["conflicts"] == 1)
    listed = {request["id"]: request["status"] for request in (await group.get("/v1/requests"))["requests"]}
    assert {status: count for status, count in overview["requests"].items() if count} == {"queued": 1, "done": 1}
    assert listed == {"r1": "done", "later": "queued"}


async def test_a_published_conflict_is_not_published_again_by_the_next_coordinator(group: ServiceGroup):
    await group.plan()
    await group.finished("w1")
    await group.finished("w2")
    await group.until("/v1/conflicts", lambda found: found["conflicts"])

    async def is_published() -> bool:
        return bool(await group.published_conflicts())

    await eventually(is_published)
    before = (await group.get("/v1/conflicts"))["conflicts"]

    await group.close()
    await group.open()

    after = await group.until("/v1/conflicts", lambda found: found["conflicts"])
    assert after["conflicts"] == before
