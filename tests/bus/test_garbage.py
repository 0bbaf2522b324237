"""Garbage in a log is one clear error, and its neighbours are folded (I10)."""

import asyncio
import json
import time

import pytest

from muster_bus import reports
from muster_bus.connection import Bus
from muster_bus.log import RequestLog, read_log
from muster_bus.read_stream import Raw
from muster_testing import until_asked
from tests.bus.broker_tools import change_stream, errors, plan, result, taken
from tests.guards import guards

GOOD = result("t1").model_dump_json().encode()
WORKER = {"sender": "worker/w1", "kind": "result"}
GARBAGE = {
    "no sender": ({"kind": "result"}, GOOD, "sender: the message has no sender header"),
    "a strange sender": ({"sender": "Me!", "kind": "result"}, GOOD, "sender: 'Me!' is not <service>/<instance>"),
    "a sender beyond ASCII": ({"sender": "wörker/1", "kind": "result"}, GOOD, "sender: 'wörker/1' is not"),
    "broken JSON": (WORKER, b'{"request_id": ', "Invalid JSON"),
    "a missing field": (WORKER, b'{"request_id": "r1"}', "task_id: is missing"),
    "not text": (WORKER, b"\xff\xfe\x00", "Invalid JSON"),
    "no kind": ({"sender": "worker/w1"}, GOOD, "kind: unknown kind ''"),
    "an unknown kind": ({"sender": "worker/w1", "kind": "news"}, GOOD, "kind: unknown kind 'news'; known here: answer"),
    "too large": (WORKER, b"x" * 600_000, "body-ref: the body has 600000 bytes"),
    "a reference to nothing": ({**WORKER, "body-ref": "x"}, b"", "body-ref: 'x' is not <sha256>.<bytes>"),
    "a status of its own": ({"kind": "result", "Status": "404"}, GOOD, "sender: the message has no sender header"),
}


@guards(
    "libs/bus/muster_bus/log.py",
    "self.state.last_sequence = max(self.state.last_sequence, raw.sequence)",
    rule="I10",
    case="broken JSON",
)
@guards(
    "libs/bus/muster_bus/read_stream.py",
    'if "Nats-Sequence" in headers:',
    rule="I10",
    replace='if "Status" not in headers:',
    case="a status of its own",
)
@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_is_one_error_however_many_read_it_and_its_neighbours_count(bus: Bus, other: Bus, name: str):
    headers, body, reason = GARBAGE[name]
    owner, listener = RequestLog(bus, "r1"), RequestLog(other, "r1")
    await owner.open()
    await listener.open()
    term = await owner.append(taken())

    stored = await bus.publisher.store("results.r1", body, headers)
    assert await owner.compare_and_set(plan(), term=term) or await owner.compare_and_set(plan(), term=term)
    last = await owner.append(result())
    async with asyncio.timeout(60):
        while listener.state.last_sequence < last:
            await listener.changed(timeout=60)
    read_later = await read_log(other, "r1")

    (error,) = await errors(bus)
    report = json.loads(error.data)
    assert report["reason"].startswith(reason)
    assert (report["stream"], report["sequence"], report["request_id"]) == ("RESULTS", stored.sequence, "r1")
    assert [entry.body.kind for entry in read_later] == ["taken", "plan", "result"]
    assert owner.state == listener.state
    assert owner.state.plan is not None


@pytest.mark.parametrize("term", ["²", "x", "-1", "", "9" * 5000], ids=["power", "letter", "sign", "none", "long"])
async def test_a_term_that_is_no_number_belongs_to_no_owner(bus: Bus, term: str):
    await bus.publisher.store(
        "results.r1", taken().model_dump_json().encode(), {"sender": "supervisor/s1", "kind": "taken", "term": term}
    )

    (entry,) = await read_log(bus, "r1")

    assert entry.term == 0


async def test_a_kind_that_only_a_newer_supervisor_knows_is_named(bus: Bus):
    log = RequestLog(bus, "r1")
    await bus.publisher.store("results.r1", b"{}", {"sender": "supervisor/s9", "kind": "replan"})

    await log.refresh()

    assert log.unknown_kind == "replan"


async def test_garbage_of_a_worker_hands_no_request_back(bus: Bus):
    log = RequestLog(bus, "r1")
    await bus.publisher.store("results.r1", b"{}", {"sender": "worker/w1", "kind": "replan"})

    await log.refresh()

    assert log.unknown_kind is None
    assert log.state.last_sequence == 1


async def test_headers_that_claim_to_be_the_brokers_are_not_believed(bus: Bus, other: Bus):
    listener = RequestLog(other, "r1")
    await listener.open()
    await other.flush()
    claims = {"Nats-Sequence": "999", "Nats-Last-Sequence": "77", "Nats-Subject": "results.evil"}

    await bus.publisher.store("results.r1", GOOD, {**WORKER, **claims})
    assert await listener.changed(timeout=60)
    (entry,) = await read_log(bus, "r1", from_leader=True)

    assert listener.state.last_sequence == entry.sequence == 1


async def test_a_report_shows_where_it_came_from_and_no_more_than_an_excerpt(bus: Bus):
    source = Raw(7, time.time(), "tasks.a", {"sender": "x" * 999}, b"\xff" * 999, "TASKS")

    await bus.report("broken", source, request_id="r1")

    (error,) = await errors(bus)
    report = json.loads(error.data)
    assert (error.headers["Nats-Msg-Id"], error.headers["sender"]) == ("TASKS.7", "supervisor/s1")
    assert (report["subject"], report["stream"], report["sequence"]) == ("tasks.a", "TASKS", 7)
    assert (len(report["claimed_sender"]), len(report["excerpt"])) == (200, 200)


async def test_garbage_that_is_read_again_much_later_is_not_reported_again(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    """The broker drops a second report only for a while."""
    monkeypatch.setattr(reports, "RECENT_SECONDS", -1.0)
    await change_stream(bus, "ERRORS", duplicate_window=100_000_000)
    for n in range(2):
        await bus.publisher.store("results.r1", b"broken", {**WORKER, "Nats-Msg-Id": str(n)})

    async def is_forgotten() -> bool:
        stored = await bus.publisher.store("errors", b"{}", {"Nats-Msg-Id": "probe"})
        return len(await errors(bus)) > 3 and not stored.is_duplicate

    await read_log(bus, "r1")
    await until_asked(is_forgotten, "the broker has forgotten the reports' ids")
    await read_log(bus, "r1")

    reported = [error.headers["Nats-Msg-Id"] for error in await errors(bus)]
    assert [message_id for message_id in reported if message_id != "probe"] == ["RESULTS.1", "RESULTS.2"]


async def test_a_report_that_a_full_stream_refuses_is_stored_when_there_is_room(bus: Bus):
    """As in an election, which takes longer than the reader may wait."""
    await bus.publisher.store("errors", b"{}", {})
    await change_stream(bus, "ERRORS", max_msgs=1)
    for sequence in (7, 8):
        await bus.report("broken", Raw(sequence, time.time(), "tasks.a", {}, b"", "TASKS"))

    await change_stream(bus, "ERRORS", max_msgs=-1)

    async def are_reported() -> bool:
        return [error.headers.get("Nats-Msg-Id") for error in await errors(bus)] == [None, "TASKS.7", "TASKS.8"]

    await until_asked(are_reported, "both are reported")


async def test_garbage_on_errors_never_loops(bus: Bus, other: Bus):
    """The report is valid, and its id is the place of the garbage, so it is stored once."""
    stored = await bus.publisher.store("errors", b"garbage", {})
    source = Raw(stored.sequence, time.time(), "errors", {}, b"garbage", "ERRORS")

    for reader in (bus, other, bus):
        await reader.report("broken", source)

    assert len(await errors(bus)) == 2
