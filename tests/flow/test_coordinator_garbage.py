"""I10 and I6 at the coordinator: what nobody else reads gets one error, and a conflict is published once."""

import asyncio

import pytest

from muster_bus.broker.topology import provision
from muster_bus.connection import Incoming
from muster_bus.receive import HeaderGate, Stored
from muster_coordinator.backfill import Backfill
from muster_coordinator.observe import Observer
from muster_protocol.messages import Cancel
from tests.flow.coordinator_harness import SETTINGS, ServiceGroup, eventually

CANCEL = {"sender": "client/x", "kind": "cancel"}
RESULT = {"sender": "worker/w1", "kind": "result"}
PROGRESS = {"sender": "worker/w1", "kind": "progress"}
TOO_LARGE = b"x" * 600_000
DANGLING = {"body-ref": "0" * 64 + ".9"}


async def test_garbage_on_every_subject_is_reported_once_and_disturbs_nothing(group: ServiceGroup):
    store = group.bus.publisher.store
    await store("events.r1", b"{}", {})
    await store("events.r1", b"{}", {"sender": "worker/w1", "kind": "nonsense"})
    await store("events.r1", b"{broken}", {"sender": "worker/w1", "kind": "started", "task": "a", "attempt": "x"})
    await store("events.r1", b"x" * 600_000, {"sender": "worker/w1", "kind": "progress"})
    await store("results.r1", b"{}", {})
    await store("results.r1", b"{}", {"sender": "worker/w1", "kind": "nonsense"})
    await store("results.r1", b"{}", {"sender": "worker/w1", "kind": "result", "attempt": "-1", "tokens": "many"})
    await store("errors", b"not even JSON", {})
    await group.bus.nc.publish("live.results.r1", b"mine", headers={"Nats-Sequence": "nine"})
    await group.plan()

    found = await group.until("/v1/errors", lambda found: len(found["errors"]) >= 8)
    await group.finished("w1")
    conflicts = await group.conflicts_after_the_answer()

    reported = sorted(f"{error.get('stream')}" for error in found["errors"])
    assert reported == ["EVENTS", "EVENTS", "EVENTS", "EVENTS", "None", "RESULTS", "RESULTS", "RESULTS"]
    assert conflicts == []


async def test_garbage_on_control_of_a_request_that_nobody_knows_gets_one_error_each(group: ServiceGroup):
    sequences = [
        await group.store_raw("control.nobody", b"{}"),
        await group.store_raw("control.nobody", b"{}", {"sender": "not a sender!", "kind": "cancel"}),
        await group.store_raw("control.nobody", b"{broken", CANCEL),
        await group.store_raw("control.nobody", b"{}", {**CANCEL, "kind": "surprise"}),
        await group.store_raw("control.nobody", TOO_LARGE, CANCEL),
        await group.store_raw("control.nobody", b"", {**CANCEL, **DANGLING}),
        await group.store_raw("control.nobody", b'{"request_id": "r1"}', CANCEL),
    ]
    large = Cancel(request_id="nobody", reason="x" * 600_000)
    await group.bus.store(large, group.bus.origin("nobody"))
    last = await group.store_raw("control.other", b"{broken", CANCEL)

    reported = await group.until_reported(*(f"CONTROL.{sequence}" for sequence in [*sequences, last]))

    assert len(reported) == len(sequences) + 1


async def test_garbage_on_control_is_reported_though_it_came_while_the_coordinator_was_away(group: ServiceGroup):
    await group.close()
    await group.store_raw("control.nobody", b"{broken", CANCEL)

    await group.open()

    assert await group.until_reported("CONTROL.1") == ["CONTROL.1"]


async def test_a_broken_body_in_a_log_that_nobody_owns_gets_one_error(group: ServiceGroup):
    await group.plan()
    await group.conflicts_after_the_answer()
    sequences = [
        await group.store_raw(subject, body, headers)
        for subject in ("results.r1", "results.nobody")
        for body, headers in (
            (b"{broken", RESULT),
            (b'{"request_id": "r1"}', RESULT),
            (b"", {**RESULT, **DANGLING}),
            (b"{broken", {"sender": "supervisor/s1", "kind": "taken"}),
        )
    ]

    reported = await group.until_reported(*(f"RESULTS.{sequence}" for sequence in sequences))

    assert len(reported) == len(sequences)
    assert {request["id"] for request in (await group.get("/v1/requests"))["requests"]} == {"r1"}


async def test_a_broken_body_in_an_open_log_is_reported_by_its_owner_only(group: ServiceGroup):
    await group.plan()
    await group.until("/v1/overview", lambda overview: overview["requests"]["running"] == 1)
    await group.store_raw("results.r1", b"{broken", RESULT)
    last = await group.store_raw("results.r1", b"{}", {"kind": "result"})

    assert await group.until_reported(f"RESULTS.{last}") == [f"RESULTS.{last}"]


async def test_every_one_of_many_conflicts_is_published(group: ServiceGroup, caplog: pytest.LogCaptureFixture):
    await group.plan()
    tasks = [f"t{number:02}" for number in range(20)]
    for task_id in tasks:
        await group.finished("w1", task_id=task_id)
        await group.finished("w2", delivery=2, task_id=task_id)

    async def are_published() -> bool:
        return await group.published_conflicts() == tasks

    await eventually(are_published)
    assert "background step failed" not in caplog.text


async def test_garbage_that_is_stored_after_it_came_live_is_found(group: ServiceGroup):
    await group.close()
    observer = Observer(group.bus.clock, HeaderGate(_unexpected))
    backfill = Backfill(group.bus, observer)
    observer.recheck.add("events.r1", asyncio.get_running_loop().time())
    assert await backfill.recheck()

    sequence = await group.store_raw("events.r1", TOO_LARGE, PROGRESS)

    async def is_found() -> bool:
        await backfill.recheck()
        return await group.reported() == [f"EVENTS.{sequence}"]

    await eventually(is_found)


async def test_a_failed_check_is_repeated_and_ends_at_the_leader(group: ServiceGroup):
    await group.close()
    asked: list[Incoming] = []
    observer = Observer(group.bus.clock, HeaderGate(_unexpected))
    backfill = Backfill(group.bus, observer)
    await group.store_raw("events.r1", TOO_LARGE, PROGRESS)
    observer.recheck.add("events.r1", asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await backfill.recheck()
    await group.bus.subscribe("$JS.API.STREAM.MSG.GET.EVENTS", asked.append)

    async def is_found() -> bool:
        await backfill.recheck()
        return bool(await group.reported() and asked)

    await eventually(is_found)


async def test_two_coordinators_report_garbage_and_conflicts_once(group: ServiceGroup):
    first = group.coordinator
    second = await group.open("c2")
    await group.plan()
    await group.finished("w1")
    await group.finished("w2", delivery=2)
    await group.answer()
    for subject, headers in (("results.r1", RESULT), ("events.r1", PROGRESS), ("control.r1", CANCEL)):
        for body in (b"{broken", b"{}", TOO_LARGE):
            await group.store_raw(subject, body, headers)

    async def have_both_ended() -> bool:
        assert first is not None
        counted = [coordinator.bus.counters["errors reported"] for coordinator in (first, second)]
        return min(counted) >= 9 and bool(await group.published_conflicts())  # one may say it again after a gap

    await eventually(have_both_ended)
    reported = await group.reported()
    assert len(set(reported)) == len(reported) == 9
    assert await group.published_conflicts() == ["a"]
    assert first is not None
    await first.stop(2.0)
    await first.bus.close()


async def test_garbage_stored_right_after_the_broker_was_killed_gets_one_error_each(group: ServiceGroup):
    await group.plan()
    group.server.kill()
    await group.server.start()
    ids = [
        f"{subject.split('.')[0].upper()}.{await group.store_raw(subject, b'{broken', headers)}"
        for subject, headers in (("results.nobody", RESULT), ("events.r1", PROGRESS), ("control.r1", CANCEL))
    ]

    assert await group.until_reported(*ids) == sorted(ids)


async def test_old_garbage_is_reported_when_nobody_did_and_not_again(group: ServiceGroup):
    js = group.bus.nc.jetstream(timeout=5)
    config = (await js.stream_info("ERRORS")).config
    config.duplicate_window = 0.1  # the broker remembers nothing: only what is on `errors` counts
    await js.update_stream(config)
    await group.store_raw("control.r1", b"{broken", CANCEL)
    await group.until_reported("CONTROL.1")
    await group.close()
    await group.store_raw("control.r1", b"{broken", CANCEL)

    await group.open(ahead_seconds=3600)

    assert await group.until_reported("CONTROL.2") == ["CONTROL.1", "CONTROL.2"]


async def test_a_coordinator_without_streams_warns_once_and_works_when_they_are_there(
    group: ServiceGroup, caplog: pytest.LogCaptureFixture
):
    js = group.bus.nc.jetstream(timeout=5)
    await group.close()
    await js.delete_stream("CONTROL")
    coordinator = await group.open()

    async def has_warned() -> bool:
        return "there is no stream CONTROL; run `muster provision`" in caplog.text

    await eventually(has_warned)
    assert coordinator.health.is_alive
    await provision(group.bus, SETTINGS, ["default"], ["math"])
    await group.store_raw("control.r1", b"{broken", CANCEL)

    assert await group.until_reported("CONTROL.1") == ["CONTROL.1"]
    assert caplog.text.count("there is no stream CONTROL") == 1


def _unexpected(reason: str, raw: Stored) -> None:
    raise AssertionError(f"no log entry was to be reported: {raw.sequence}: {reason}")
