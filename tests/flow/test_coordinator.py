"""The coordinator against a real broker, asked over real HTTP; the tests write as supervisors and workers would."""

import asyncio
import json

import pytest

from muster_bus.buckets.kv import Bucket
from muster_bus.read_stream import read_subject
from muster_coordinator.api.watching import by_tag
from muster_coordinator.coordinator import Coordinator
from muster_coordinator.overview import Overview
from muster_protocol.errors import Misconfigured
from muster_protocol.messages import Reservation, Reserved
from tests.flow.coordinator_harness import ServiceGroup, eventually


async def test_a_result_that_came_twice_counts_once_in_the_list_and_in_the_request(group: ServiceGroup):
    await group.plan()
    await group.finished("w1", delivery=1)
    await group.finished("w2", delivery=2)
    await group.conflicts_after_the_answer()

    (listed,) = (await group.get("/v1/requests"))["requests"]
    shown = await group.get("/v1/requests/r1")

    assert [(found["done"], found["failed"], found["cancelled"]) for found in (listed, shown)] == [(1, 0, 0)] * 2
    assert shown["results_uncounted"] == 1


async def test_attempts_that_were_reserved_in_a_large_body_are_counted(group: ServiceGroup):
    tasks = [f"{number:064}" for number in range(6000)]
    await group.plan()
    await group.write(Reserved(attempts=tuple(Reservation(task_id=t, attempt=1, timeout_seconds=60) for t in tasks)))
    for task_id in tasks[:3]:
        await group.finished("w1", task_id=task_id)

    await group.until("/v1/requests", lambda found: [request["done"] for request in found["requests"]] == [3])


async def test_a_request_that_is_too_large_to_be_followed_is_counted_from_its_log(group: ServiceGroup):
    assert group.coordinator is not None
    group.coordinator.observer.overview = Overview(max_tasks=0)
    await group.plan()
    await group.finished("w1")
    await group.finished("w2", delivery=2)

    await group.until("/v1/requests", lambda found: [request["done"] for request in found["requests"]] == [1])


async def test_a_request_is_submitted_followed_and_answered_over_http(group: ServiceGroup):
    status, headers, sent = await group.ask("POST", "/v1/requests", {"text": "hi"}, **{"Idempotency-Key": "r1"})
    _, _, waiting = await group.ask("GET", "/v1/requests/r1")
    early, _, _ = await group.ask("GET", "/v1/requests/r1/answer")
    polling = asyncio.create_task(group.ask("GET", "/v1/requests/r1/answer?wait=20"))
    streaming = asyncio.create_task(group.ask("GET", "/v1/requests/r1/events"))
    await group.plan()
    await group.finished("w1")
    await group.answer()

    late, _, answer = await polling
    _, _, stream = await streaming
    shown = await group.get("/v1/requests/r1")
    assert (status, sent["id"], headers["Location"]) == (202, "r1", "/v1/requests/r1")
    assert (waiting["status"], early) == ("queued", 202)
    assert (late, answer["text"]) == (200, "42")
    assert [line for line in stream.splitlines() if line.startswith("event:")] == [
        "event: taken",
        "event: plan",
        "event: reserved",
        "event: result",
        "event: answer",
        "event: end",
    ]
    assert (shown["status"], shown["tasks"][0]["status"], shown["answer"]["text"]) == ("done", "done", "42")


async def test_a_cancel_over_http_is_stored_on_control(group: ServiceGroup):
    await group.plan()

    status, _, _ = await group.ask("POST", "/v1/requests/r1/cancel?reason=enough")

    (stored,) = await read_subject(group.bus.nc, "control.r1")
    assert status == 202
    assert json.loads(stored.data)["reason"] == "enough"


async def test_an_answered_request_cannot_be_cancelled_over_http(group: ServiceGroup):
    await group.plan()
    await group.answer()
    await group.until("/v1/overview", lambda overview: overview["requests"].get("done") == 1)

    status, _, body = await group.ask("POST", "/v1/requests/r1/cancel")

    assert status == 409
    assert "r1 is over already: done" in str(body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"plan": {"tasks": [{"id": "a"}]}}, "plan.tasks.0.description"),
        ({"text": "hi", "deadline_seconds": 1e9}, "deadline_seconds"),
        ({"text": "hi", "team": "no such"}, "team"),
        ({"text": "hi", "deadline": 3}, "deadline"),
        ({"plan": {"tasks": [{"id": "a", "description": "x", "tagg": "math"}]}}, "plan.tasks.0.tagg"),
    ],
)
async def test_a_wrong_request_is_a_problem_that_names_the_field(group: ServiceGroup, body: object, field: str):
    status, headers, problem = await group.ask("POST", "/v1/requests", body)

    assert (status, headers["Content-Type"], problem["field"]) == (422, "application/problem+json", field)


async def test_a_body_that_is_not_json_is_refused_with_the_reason(group: ServiceGroup):
    for kind, body, status, words in (
        ("text/plain", b'{"text": "x"}', 415, "content-type: application/json"),
        ("application/json", b"{bad", 422, "the body is not JSON"),
    ):
        found, _, problem = await group.ask("POST", "/v1/requests", body, **{"Content-Type": kind})

        assert (found, words in problem["detail"]) == (status, True)


async def test_an_unknown_request_is_not_found(group: ServiceGroup):
    for path in ("", "/answer", "/events"):
        status, _, problem = await group.ask("GET", f"/v1/requests/nobody{path}")

        assert status == 404
        assert "no request 'nobody'" in problem["detail"]


async def test_the_registry_is_listed(group: ServiceGroup):
    await Bucket(group.bus, "workers").put("w1", b'{"tags": ["math"], "slots": 4, "busy": 1}')
    await Bucket(group.bus, "workers").put("w2", b"garbage")

    listed = await group.get("/v1/workers")

    assert listed["workers"] == [
        {"name": "worker-w1", "tags": ["math"], "slots": 4, "busy": 1},
        {"name": "worker-w2", "tags": [], "slots": 0, "busy": 0},
    ]


def test_the_queues_of_a_tag_are_shown_by_lane():
    counts = {"tasks.math.low": 200, "tasks.math": 3, "tasks.math.high": 1, "tasks.prose.low": 1}

    assert by_tag(counts) == {"math": {"normal": 3, "high": 1, "low": 200}, "prose": {"low": 1}}


async def test_the_overview_names_the_tags_on_which_tasks_wait_and_that_no_worker_has(group: ServiceGroup):
    await group.task()
    overview = await group.get("/v1/overview")
    assert (overview["unserved_tags"], overview["queues"]) == (["math"], {"math": {"normal": 1}})

    await Bucket(group.bus, "workers").put("w1", b'{"tags": ["math"], "slots": 4, "busy": 1}')
    assert (await group.get("/v1/overview"))["unserved_tags"] == []


async def test_without_a_broker_the_api_answers_503_and_the_service_lives(group: ServiceGroup):
    assert (await group.ask("GET", "/readyz"))[0] == 200
    group.server.kill()

    async def is_unready() -> bool:
        return (await group.ask("GET", "/readyz"))[0] == 503

    await eventually(is_unready)

    status, headers, problem = await group.ask("GET", "/v1/requests")

    assert (status, headers["Retry-After"]) == (503, "2")
    assert "the broker is away" in problem["detail"]
    assert (await group.ask("GET", "/healthz"))[0] == 200


async def test_entries_from_a_broker_restart_are_read_afterwards(group: ServiceGroup):
    await group.plan()
    await group.until("/v1/overview", lambda overview: overview["requests"]["running"] == 1)
    group.server.kill()
    await group.server.start()
    await group.finished("w1")
    await group.answer()

    await group.until("/v1/overview", lambda overview: overview["requests"].get("done") == 1)


async def test_a_stop_does_not_wait_for_clients_that_follow_a_stream(group: ServiceGroup):
    await group.plan()
    assert group.coordinator is not None
    address = group.coordinator.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(address[0], int(address[1]))
    writer.write(b"GET /v1/requests/r1/events HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(60):
        await reader.readuntil(b"event: reserved")

    async with asyncio.timeout(60):
        await group.close()

    writer.close()


async def test_a_port_in_use_is_a_clear_error(group: ServiceGroup):
    first = Coordinator(group.bus, port=0)
    await first.start()
    port = int(first.address.rpartition(":")[2])
    second = Coordinator(group.bus, port=port)

    with pytest.raises(Misconfigured, match=f"port {port} on 127.0.0.1 is in use"):
        await second.start()

    await first.stop(2.0)


async def test_requests_are_listed_by_status_and_an_unknown_one_is_refused(group: ServiceGroup):
    await group.plan()
    await group.finished("w1")
    await group.answer()
    await group.until("/v1/requests?status=done", lambda found: [one["id"] for one in found["requests"]] == ["r1"])

    assert (await group.get("/v1/requests?status=running"))["requests"] == []
    status, _, problem = await group.ask("GET", "/v1/requests?status=bogus")
    assert (status, problem["field"]) == (422, "query.status")
    assert "'done'" in problem["detail"]
