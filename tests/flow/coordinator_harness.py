"""A real broker and a coordinator; the tests write what supervisors and workers would write."""

import asyncio
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import Provisioning
from muster_bus.connection import Bus
from muster_bus.read_stream import read_subject
from muster_coordinator.coordinator import Coordinator
from muster_protocol.headers import headers_of
from muster_protocol.messages import (
    Abort,
    Answer,
    AnswerStatus,
    HandedBack,
    LogBody,
    PlanRecorded,
    Reservation,
    Reserved,
    Result,
    ResultStatus,
    Started,
    Taken,
    Task,
)
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.sender import Origin, Sender
from tests.harness import store_once

SETTINGS = Provisioning(lease_seconds=1, ack_wait_seconds=1)
PLAN = Plan(tasks=(TaskSpec(id="a", description="look", tag="math"),))


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.02)


class ServiceGroup:
    """One installation; only the broker and the coordinator run."""

    def __init__(self, server: Server, bus: Bus) -> None:
        self.server, self.bus, self.term = server, bus, 0
        self.coordinator: Coordinator | None = None

    async def open(self, instance: str = "c1", *, ahead_seconds: float = 0.0) -> Coordinator:
        """Start a coordinator, whose clock may be ahead: then all that is stored seems old to it."""
        bus = await Bus.connect(self.server.url, Sender("coordinator", instance))
        bus.clock.observe(time.time() + ahead_seconds)
        self.coordinator = Coordinator(bus, port=0)
        await self.coordinator.start()
        return self.coordinator

    async def close(self) -> None:
        if self.coordinator is not None:
            await self.coordinator.stop(2.0)
            await self.coordinator.bus.close()
            self.coordinator = None

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any, Any]:
        assert self.coordinator is not None
        url = f"{self.coordinator.address}{path}"

        def send() -> tuple[int, Any, Any]:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
            try:
                with urllib.request.urlopen(request, timeout=20) as reply:
                    return reply.status, reply.headers, reply.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.headers, error.read()

        status, headers_back, content = await asyncio.to_thread(send)
        is_json = "json" in headers_back.get("Content-Type", "")
        return status, headers_back, json.loads(content) if is_json else content.decode()

    async def get(self, path: str) -> Any:
        status, _, content = await self.ask("GET", path)
        assert status == 200, content
        return content

    async def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        async def holds_now() -> bool:
            status, _, content = await self.ask("GET", path)
            return status == 200 and bool(holds(content))

        await eventually(holds_now)
        return await self.get(path)

    async def write(self, body: LogBody, sender: str = "supervisor/s1") -> None:
        origin = Origin("r1", Sender.parse(sender), term=self.term, nonce=secrets.token_hex(8))
        stored = await self.bus.store(body, origin)
        if isinstance(body, Taken):
            self.term = stored.sequence

    async def plan(self) -> None:
        await self.write(
            Taken(instance="s1", delivery=1, team="default", deadline=9e9, request_hash="x", request_sequence=1)
        )
        await self.write(PlanRecorded(plan=PLAN, team="default", request_hash="x", deadline=9e9, in_flight=8))
        await self.write(Reserved(attempts=(Reservation(task_id="a", attempt=1, timeout_seconds=60),)))

    async def task(self, task_id: str = "a") -> int:
        """Store a task message, however many there are of the attempt; returns its sequence."""
        task = Task(
            request_id="r1",
            task_id=task_id,
            attempt=1,
            tag="math",
            team="default",
            description="look",
            timeout_seconds=60,
            deadline=9e9,
            reserved_at=1.0,
            reserved_sequence=1,
        )
        headers = headers_of(task, Origin("r1", Sender("supervisor", "s1"), term=self.term))
        return await self.store_raw("tasks.math", task.body(), {**headers, "Nats-Msg-Id": secrets.token_hex(8)})

    async def started(self, worker: str, delivery: int = 1, task_sequence: int = 7, at: float = 0.0) -> None:
        event = Started(
            request_id="r1",
            task_id="a",
            attempt=1,
            worker=worker,
            role="math",
            delivery=delivery,
            task_sequence=task_sequence,
            at=at,
        )
        await self.publish(event, worker)

    async def publish(self, event: Started | HandedBack, worker: str) -> None:
        await self.bus.store(event, Origin("r1", Sender("worker", worker), nonce=secrets.token_hex(8)))

    async def finished(self, worker: str, delivery: int = 1, sender: str = "worker", task_id: str = "a") -> None:
        result = Result(
            request_id="r1",
            task_id=task_id,
            attempt=1,
            status=ResultStatus.DONE,
            worker=worker,
            role="math",
            delivery=delivery,
        )
        await self.write(result, f"{sender}/{worker}")

    async def answer(self) -> None:
        await self.write(Answer(request_id="r1", status=AnswerStatus.DONE, text="42", seconds=1.5))

    async def conflicts_after_the_answer(self) -> list[Any]:
        """The conflicts when the answer shows: everything before the answer is then observed."""
        await self.answer()
        await self.until("/v1/overview", lambda overview: overview["requests"].get("done") == 1)
        coordinator = self.coordinator
        assert coordinator is not None

        async def is_judged() -> bool:
            return not coordinator.observer.evidence.suspects

        await eventually(is_judged)
        return (await self.get("/v1/conflicts"))["conflicts"]

    async def conflicts_now(self) -> list[Any]:
        return (await self.get("/v1/conflicts"))["conflicts"]

    async def until_checked(self) -> None:
        """Wait until the coordinator has asked who lives."""

        async def is_checked() -> bool:
            return any(raw.headers["kind"] == "check" for raw in await read_subject(self.bus.nc, "control.r1"))

        await eventually(is_checked)

    async def until_aborts(self, count: int) -> list[Abort]:
        """Wait for so many aborts; all that there are then."""
        found: list[Abort] = []

        async def are_there() -> bool:
            stored = await read_subject(self.bus.nc, "control.r1")
            found[:] = [Abort.read(raw.data) for raw in stored if raw.headers["kind"] == "abort"]
            return len(found) >= count

        await eventually(are_there)
        return found

    async def store_raw(self, subject: str, body: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Store a message as anybody could; returns its sequence."""
        return (await store_once(self.bus, subject, body, headers)).sequence

    async def reported(self) -> list[str]:
        """The message ids of all errors."""
        return sorted(raw.headers.get("Nats-Msg-Id", "") for raw in await read_subject(self.bus.nc, "errors"))

    async def until_reported(self, *ids: str) -> list[str]:
        """Wait until all of these are on `errors`; all that is there then."""

        async def are_reported() -> bool:
            return set(ids) <= set(await self.reported())

        await eventually(are_reported)
        return await self.reported()

    async def published_conflicts(self) -> list[str]:
        """The tasks of which a conflict was published."""
        events = await read_subject(self.bus.nc, "events.r1")
        return sorted(json.loads(raw.data)["task_id"] for raw in events if raw.headers.get("kind") == "conflict")
