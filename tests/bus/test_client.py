"""The client against a real broker and a log that is written by hand."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import nats
import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_bus.read_stream import read_subject
from muster_client import Client, LiveEvent
from muster_protocol.errors import BrokerAway, Invalid
from muster_protocol.fold import Entry
from muster_protocol.messages import (
    Answer,
    AnswerStatus,
    LogBody,
    PlanRecorded,
    Progress,
    Request,
    Reservation,
    Reserved,
    Result,
    ResultStatus,
    Taken,
)
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.sender import Sender

SETTINGS = Provisioning(lease_seconds=1, ack_wait_seconds=1, results_age=timedelta(hours=2))
PLAN = Plan(tasks=(TaskSpec(id="a", description="look", tag="math"), TaskSpec(id="b", description="see", tag="math")))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def owner(server: Server) -> AsyncIterator[Bus]:
    bus = await Bus.connect(server.url, Sender("supervisor", "s1"))
    await provision(bus, SETTINGS, ["default"], ["math"])
    yield bus
    await bus.close()


@pytest.fixture
async def client(server: Server, owner: Bus) -> AsyncIterator[Client]:
    assert owner.connected.is_set()
    async with await Client.connect(server.url) as client:
        yield client


class LogWriter:
    """Writes a request's log as a supervisor and its workers would."""

    def __init__(self, bus: Bus, request_id: str) -> None:
        self.bus, self.request_id, self.term = bus, request_id, 0

    async def write(self, body: LogBody) -> int:
        origin = self.bus.origin(self.request_id, term=self.term, nonce=secrets.token_hex(8))
        return (await self.bus.store(body, origin)).sequence

    async def plan(self) -> None:
        taken = Taken(instance="s1", delivery=1, team="default", deadline=9e9, request_hash="x", request_sequence=1)
        self.term = await self.write(taken)
        await self.write(PlanRecorded(plan=PLAN, team="default", request_hash="x", deadline=9e9, in_flight=8))
        attempts = tuple(Reservation(task_id=task.id, attempt=1, timeout_seconds=60) for task in PLAN.tasks)
        await self.write(Reserved(attempts=attempts))

    async def result(self, task_id: str, output: str, attempt: int = 1) -> None:
        result = Result(
            request_id=self.request_id,
            task_id=task_id,
            attempt=attempt,
            status=ResultStatus.DONE,
            output=output,
            worker="w1",
            role="math",
        )
        await self.write(result)

    async def answer(self, text: str) -> None:
        await self.write(Answer(request_id=self.request_id, status=AnswerStatus.DONE, text=text))


async def test_a_submitted_request_is_kept_with_all_its_headers(client: Client, owner: Bus):
    request_id = await client.submit("what is it?", deadline_seconds=60)

    (stored,) = await read_subject(owner.nc, "requests.default")

    assert stored.headers["Nats-Msg-Id"] == request_id
    assert stored.headers["request-id"] == request_id
    assert stored.headers["sender"].startswith("client/")
    assert stored.headers["kind"] == "request"
    assert stored.headers["schema"] == "1"
    assert json.loads(stored.data)["text"] == "what is it?"


async def test_an_id_that_the_caller_chose_travels_in_the_body_and_not_as_message_id(client: Client, owner: Bus):
    first = await client.submit("what is it?", id="mine")
    again = await client.submit("what is it?", id="mine")

    stored = await read_subject(owner.nc, "requests.default")

    assert first == again == "mine"
    assert ["Nats-Msg-Id" in raw.headers for raw in stored] == [False, False]
    assert [Request.read(raw.data).id for raw in stored] == ["mine", "mine"]


async def test_the_answer_arrives_whether_it_is_awaited_before_or_after_it_was_written(client: Client, owner: Bus):
    request_id = await client.submit(plan=PLAN)
    waiting = asyncio.create_task(client.answer(request_id, timeout=60))
    writer = LogWriter(owner, request_id)
    await writer.plan()
    await writer.result("a", "1")
    await writer.answer("it is 1")

    assert (await waiting).text == "it is 1"
    assert (await client.answer(request_id, timeout=60)).text == "it is 1"


async def test_an_answer_of_a_former_owner_does_not_count(client: Client, owner: Bus):
    former, current = LogWriter(owner, "r1"), LogWriter(owner, "r1")
    await former.plan()
    current.term = await current.write(
        Taken(instance="s2", delivery=2, team="default", deadline=9e9, request_hash="x", request_sequence=1)
    )
    await former.answer("too late")
    await current.answer("right")

    assert (await client.answer("r1", timeout=60)).text == "right"


async def test_results_are_those_that_count_and_end_with_the_answer(client: Client, owner: Bus):
    writer = LogWriter(owner, "r1")
    await writer.plan()
    await writer.result("a", "first")
    await writer.result("a", "second finisher")
    await writer.result("zzz", "of no task")
    await writer.result("b", "other")
    await writer.answer("done")

    async with asyncio.timeout(60):
        outputs = [result.output async for result in client.results("r1")]

    assert outputs == ["first", "other"]


async def test_updates_are_the_whole_log_in_order_with_events_between(client: Client, owner: Bus):
    writer = LogWriter(owner, "r1")
    await writer.plan()
    kinds: list[str] = []
    progress = Progress(request_id="r1", task_id="a", attempt=1, text="half")
    async with asyncio.timeout(60):
        async for update in client.updates("r1"):
            kinds.append(update.body.kind)
            if isinstance(update, Entry) and update.body.kind == "reserved":
                owner.announce(progress, owner.origin("r1"))
            if isinstance(update, LiveEvent):
                await writer.result("a", "1")
                await writer.answer("done")

    assert kinds == ["taken", "plan", "reserved", "progress", "result", "answer"]


async def test_garbage_in_the_log_is_reported_and_does_not_stop_a_follower(client: Client, owner: Bus):
    writer = LogWriter(owner, "r1")
    await writer.plan()
    waiting = asyncio.create_task(client.answer("r1", timeout=60))
    await owner.publisher.store("results.r1", b"{", {"sender": "worker/w1", "kind": "result"})
    await owner.publisher.store("results.r1", b"{", {"sender": "worker/w1", "kind": "nonsense"})
    await owner.publisher.store("results.r1", b"no headers", {})
    await writer.answer("done")

    assert (await waiting).text == "done"


async def test_the_answer_is_found_after_the_broker_was_killed_and_came_back(
    client: Client, owner: Bus, server: Server
):
    writer = LogWriter(owner, "r1")
    await writer.plan()
    waiting = asyncio.create_task(client.answer("r1", timeout=30))

    server.kill()
    await server.start()
    await writer.answer("done")

    assert (await waiting).text == "done"


async def test_the_state_is_the_fold_of_the_log(client: Client, owner: Bus):
    writer = LogWriter(owner, "r1")
    await writer.plan()
    await writer.result("a", "1")

    state = await client.state("r1")

    assert {task_id: task.phase.value for task_id, task in state.tasks.items()} == {"a": "done", "b": "reserved"}


async def test_a_cancel_is_kept_on_control(client: Client, owner: Bus):
    await client.cancel("r1", "enough")

    (stored,) = await read_subject(owner.nc, "control.r1")

    assert stored.headers["kind"] == "cancel"
    assert json.loads(stored.data) == {"request_id": "r1", "reason": "enough"}


async def test_an_unknown_team_is_a_clear_error(client: Client):
    with pytest.raises(Invalid, match="no team 'nobody' is provisioned; teams: default"):
        await client.submit("hello", team="nobody")


async def test_a_deadline_longer_than_the_log_lives_is_refused(client: Client):
    with pytest.raises(Invalid, match=r"deadline_seconds: 7200 s are more than the 3600 s"):
        await client.submit("hello", deadline_seconds=7200)


async def test_a_wrong_field_is_named(client: Client):
    with pytest.raises(Invalid, match=r"plan\.tasks\.0\.description"):
        await client.submit(plan={"tasks": [{"id": "a", "tag": "math"}]})
    with pytest.raises(Invalid, match=r"plan\.tasks\.0\.dependancies: no such field; did you mean 'dependencies'"):
        await client.submit(plan={"tasks": [{"id": "a", "description": "add", "dependancies": ["b"]}]})
    with pytest.raises(Invalid, match="conversation: this version does not support it"):
        await client.send(Request(text="hello", conversation="c"))
    with pytest.raises(Invalid, match="exactly one of text, plan or map"):
        await client.submit()


async def test_no_answer_in_time_is_a_timeout(client: Client):
    request_id = await client.submit("hello")

    with pytest.raises(TimeoutError, match=f"no answer to {request_id}"):
        await client.answer(request_id, timeout=0.2)


async def test_a_request_that_nobody_knows_is_not_waited_for(client: Client):
    await client.submit("another one")

    with pytest.raises(Invalid, match="no request 'nix' is known here"):
        await client.answer("nix", timeout=60)
    with pytest.raises(Invalid, match="no request 'nix' is known here"):
        await anext(client.results("nix"))
    with pytest.raises(Invalid, match="no request 'nix' is known here"):
        await anext(client.updates("nix"))


async def test_a_queued_request_of_another_client_is_waited_for(client: Client, owner: Bus, server: Server):
    async with await Client.connect(server.url) as asker:
        request_id = await asker.submit("what is it?")
    with pytest.raises(TimeoutError):
        await client.answer(request_id, timeout=0.5)

    waiting = asyncio.create_task(client.answer(request_id, timeout=60))
    writer = LogWriter(owner, request_id)
    await writer.plan()
    await writer.answer("it is this")

    assert (await waiting).text == "it is this"


async def test_headers_are_read_as_nats_py_reads_them(owner: Bus, server: Server):
    plain = await nats.connect(server.url)
    subscriptions = [await nc.subscribe("odd") for nc in (plain, owner.nc)]
    await plain.flush()
    await owner.nc.flush()
    headers = {"sender": "worker/w1", "Nats-Msg-Id": "a:b: c", "text": "  zwölf\t", "empty": "", "a-b_c": "é"}
    await plain.publish("odd", b"", headers=headers)

    first, second = [await subscription.next_msg(60) for subscription in subscriptions]

    assert second.headers == first.headers
    assert second.headers is not None
    assert second.headers["Nats-Msg-Id"] == "a:b: c"
    await plain.close()


async def test_a_broker_that_is_not_there_is_a_clear_error(server: Server):
    server.kill()

    with pytest.raises(BrokerAway, match="no NATS server answers"):
        await Client.connect(server.url)
