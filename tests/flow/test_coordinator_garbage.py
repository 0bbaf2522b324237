"""I10 and I6 at the coordinator: what nobody else reads gets one error, and a conflict is told once."""

import asyncio

import pytest

from muster_bus.connection import Heard
from muster_bus.topology import provision
from muster_coordinator.backfill import CatchingUp
from muster_coordinator.observe import Hearing
from muster_protocol import subjects
from muster_protocol.messages import Cancel
from tests.flow.coordinator_harness import SETTINGS, House, eventually

CANCEL = {"sender": "client/x", "kind": "cancel"}
RESULT = {"sender": "worker/w1", "kind": "result"}
PROGRESS = {"sender": "worker/w1", "kind": "progress"}
TOO_LARGE = b"x" * 600_000
DANGLING = {"body-ref": "0" * 64 + ".9"}


async def test_garbage_on_every_subject_is_reported_once_and_disturbs_nothing(house: House):
    store = house.bus.publisher.store
    await store("events.r1", b"{}", {})
    await store("events.r1", b"{}", {"sender": "worker/w1", "kind": "nonsense"})
    await store("events.r1", b"{broken}", {"sender": "worker/w1", "kind": "started", "task": "a", "attempt": "x"})
    await store("events.r1", b"x" * 600_000, {"sender": "worker/w1", "kind": "progress"})
    await store("results.r1", b"{}", {})
    await store("results.r1", b"{}", {"sender": "worker/w1", "kind": "nonsense"})
    await store("results.r1", b"{}", {"sender": "worker/w1", "kind": "result", "attempt": "-1", "tokens": "many"})
    await store("errors", b"not even JSON", {})
    await house.bus.nc.publish("live.results.r1", b"mine", headers={"Nats-Sequence": "nine"})
    await house.plan()

    found = await house.until("/v1/errors", lambda found: len(found["errors"]) >= 8)
    await house.finished("w1")
    conflicts = await house.conflicts_after_the_answer()

    reported = sorted(f"{error.get('stream')}" for error in found["errors"])
    assert reported == ["EVENTS", "EVENTS", "EVENTS", "EVENTS", "None", "RESULTS", "RESULTS", "RESULTS"]
    assert conflicts == []


async def test_garbage_on_control_of_a_request_that_nobody_knows_gets_one_error_each(house: House):
    thrown = [
        await house.throw("control.nobody", b"{}"),
        await house.throw("control.nobody", b"{}", {"sender": "not a sender!", "kind": "cancel"}),
        await house.throw("control.nobody", b"{broken", CANCEL),
        await house.throw("control.nobody", b"{}", {**CANCEL, "kind": "surprise"}),
        await house.throw("control.nobody", TOO_LARGE, CANCEL),
        await house.throw("control.nobody", b"", {**CANCEL, **DANGLING}),
        await house.throw("control.nobody", b'{"request_id": "r1"}', CANCEL),
    ]
    large = Cancel(request_id="nobody", reason="x" * 600_000)
    await house.bus.store(subjects.control("nobody"), large, request_id="nobody", once="large")
    last = await house.throw("control.other", b"{broken", CANCEL)

    reported = await house.until_reported(*(f"CONTROL.{sequence}" for sequence in [*thrown, last]))

    assert len(reported) == len(thrown) + 1


async def test_garbage_on_control_is_reported_though_it_came_while_the_coordinator_was_away(house: House):
    await house.close()
    await house.throw("control.nobody", b"{broken", CANCEL)

    await house.open()

    assert await house.until_reported("CONTROL.1") == ["CONTROL.1"]


async def test_a_broken_body_in_a_log_that_nobody_owns_gets_one_error(house: House):
    await house.plan()
    await house.conflicts_after_the_answer()
    thrown = [
        await house.throw(subject, body, headers)
        for subject in ("results.r1", "results.nobody")
        for body, headers in (
            (b"{broken", RESULT),
            (b'{"request_id": "r1"}', RESULT),
            (b"", {**RESULT, **DANGLING}),
            (b"{broken", {"sender": "supervisor/s1", "kind": "taken"}),
        )
    ]

    reported = await house.until_reported(*(f"RESULTS.{sequence}" for sequence in thrown))

    assert len(reported) == len(thrown)
    assert {request["id"] for request in (await house.get("/v1/requests"))["requests"]} == {"r1"}


async def test_a_broken_body_in_an_open_log_is_left_to_its_owner(house: House):
    await house.plan()
    await house.until("/v1/overview", lambda overview: overview["requests"]["open"] == 1)
    await house.throw("results.r1", b"{broken", RESULT)
    last = await house.throw("results.r1", b"{}", {"kind": "result"})

    assert await house.until_reported(f"RESULTS.{last}") == [f"RESULTS.{last}"]


async def test_every_one_of_many_conflicts_is_told(house: House, caplog: pytest.LogCaptureFixture):
    await house.plan()
    tasks = [f"t{number:02}" for number in range(20)]
    for task_id in tasks:
        await house.finished("w1", task_id=task_id)
        await house.finished("w2", delivery=2, task_id=task_id)

    async def are_told() -> bool:
        return await house.conflicts_told() == tasks

    await eventually(are_told)
    assert "broke" not in caplog.text


async def test_garbage_that_is_stored_after_it_was_heard_is_found(house: House):
    await house.close()
    hearing = Hearing(house.bus.clock)
    catching_up = CatchingUp(house.bus, hearing)
    hearing.suspects.hear("events.r1", asyncio.get_running_loop().time())
    assert await catching_up.suspects()

    sequence = await house.throw("events.r1", TOO_LARGE, PROGRESS)

    async def is_found() -> bool:
        await catching_up.suspects()
        return list(hearing.refusals.waiting) == [f"EVENTS.{sequence}"]

    await eventually(is_found)


async def test_a_look_that_fails_is_taken_again_and_ends_at_the_leader(house: House):
    await house.close()
    asked: list[Heard] = []
    hearing = Hearing(house.bus.clock)
    catching_up = CatchingUp(house.bus, hearing)
    await house.throw("events.r1", TOO_LARGE, PROGRESS)
    hearing.suspects.hear("events.r1", asyncio.get_running_loop().time())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await catching_up.suspects()
    await house.bus.subscribe("$JS.API.STREAM.MSG.GET.EVENTS", asked.append)

    async def is_found() -> bool:
        await catching_up.suspects()
        return bool(hearing.refusals.waiting and asked)

    await eventually(is_found)


async def test_two_coordinators_report_garbage_and_conflicts_once(house: House):
    first = house.coordinator
    second = await house.open("c2")
    await house.plan()
    await house.finished("w1")
    await house.finished("w2", delivery=2)
    await house.answer()
    for subject, headers in (("results.r1", RESULT), ("events.r1", PROGRESS), ("control.r1", CANCEL)):
        for body in (b"{broken", b"{}", TOO_LARGE):
            await house.throw(subject, body, headers)

    async def have_both_ended() -> bool:
        assert first is not None
        counted = [coordinator.bus.counters["errors reported"] for coordinator in (first, second)]
        return counted == [9, 9] and bool(await house.conflicts_told())

    await eventually(have_both_ended)
    reported = await house.reported()
    assert len(set(reported)) == len(reported) == 9
    assert await house.conflicts_told() == ["a"]
    assert first is not None
    await first.stop(2.0)
    await first.bus.close()


async def test_garbage_thrown_right_after_the_broker_was_killed_gets_one_error_each(house: House):
    await house.plan()
    house.server.kill()
    await house.server.start()
    thrown = [
        f"{subject.split('.')[0].upper()}.{await house.throw(subject, b'{broken', headers)}"
        for subject, headers in (("results.nobody", RESULT), ("events.r1", PROGRESS), ("control.r1", CANCEL))
    ]

    assert await house.until_reported(*thrown) == sorted(thrown)


async def test_old_garbage_is_reported_when_nobody_did_and_not_again(house: House):
    js = house.bus.nc.jetstream(timeout=5)
    config = (await js.stream_info("ERRORS")).config
    config.duplicate_window = 0.1  # the broker remembers nothing: only what is on `errors` counts
    await js.update_stream(config)
    await house.throw("control.r1", b"{broken", CANCEL)
    await house.until_reported("CONTROL.1")
    await house.close()
    await house.throw("control.r1", b"{broken", CANCEL)

    await house.open(ahead_seconds=3600)

    assert await house.until_reported("CONTROL.2") == ["CONTROL.1", "CONTROL.2"]


async def test_a_coordinator_without_streams_says_so_once_and_works_when_they_are_there(
    house: House, caplog: pytest.LogCaptureFixture
):
    js = house.bus.nc.jetstream(timeout=5)
    await house.close()
    await js.delete_stream("CONTROL")
    coordinator = await house.open()

    async def has_complained() -> bool:
        return "there is no stream CONTROL; run `muster provision`" in caplog.text

    await eventually(has_complained)
    assert coordinator.health.is_alive
    await provision(house.bus, SETTINGS, ["default"], ["math"])
    await house.throw("control.r1", b"{broken", CANCEL)

    assert await house.until_reported("CONTROL.1") == ["CONTROL.1"]
    assert caplog.text.count("there is no stream CONTROL") == 1
