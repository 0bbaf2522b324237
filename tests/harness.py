"""A running team of scripted roles, and what the tests of Muster itself do to its streams."""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from muster_bus.broker.queues import Queue
from muster_bus.connection import Bus
from muster_bus.publish import Stored
from muster_bus.read_stream import Raw
from muster_protocol.messages import Task
from muster_protocol.subjects import request_id
from muster_testing import RunningTeam, roles
from muster_testing.backlog import Backlog, backlog
from muster_testing.waiting import LIMIT_SECONDS

LEASE_SECONDS = 1.0
ROOT = Path(__file__).parent.parent
TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scripted, tags: [other], run: "muster_testing.roles:scripted"}
  - {name: second, run: "muster_testing.roles:scripted"}
%slimits: {in_flight: %d, deadline_seconds: 300}
"""


class Muster(RunningTeam):
    """A running team whose roles do what their tasks' orders say."""

    async def submit(self, tasks: list[dict[str, Any]], **more: Any) -> str:
        """Submit a plan. A task may have `orders` for the scripted role in place of tag and description."""
        plan = {"goal": "a test", "tasks": [_task(task) for task in tasks]}
        return await self.client.submit(plan=plan, **more)

    def release(self, name: str) -> None:
        """Give the signal that tasks with the order {"until": name} wait for."""
        roles.release(self.folder, name)

    def traces(self, what: str = "start") -> list[dict[str, Any]]:
        return roles.traces(self.folder, what)

    def executions(self, request_id: str) -> Counter[str]:
        """How often each task of a request was started."""
        return roles.executions(self.folder, request_id)

    async def publish(self, subject: str, body: bytes, headers: Mapping[str, str] | None) -> Stored:
        """As anybody could: raw bytes, any headers."""
        return await store_once(self.bus, subject, body, headers)

    async def store_copy(self, subject: str, copy: Raw, age_seconds: float) -> Stored:
        """A task message stored once more under its own id, as if its reservation were older."""
        task = Task.read(copy.data)
        older = task.model_copy(update={"reserved_at": task.reserved_at - age_seconds})
        headers = {name: value for name, value in copy.headers.items() if not name.startswith("Nats-")}
        headers["Nats-Msg-Id"] = str(task.attempt_id)
        return await self.bus.publisher.store(subject, older.model_dump_json().encode(), headers, give_up_after=5)

    def id_of(self, stored: Stored, body: bytes) -> str:
        return request_id(None, None, stored.sequence, body)

    async def until_settled(self, subject: str, within: float = LIMIT_SECONDS) -> None:
        """Wait until a queue holds no message: nothing waits, and nothing is being worked on.

        The stream is asked: a consumer learns of a message a little after its sender does.
        """
        limit = time.monotonic() + within
        while left := await self.bus.read(subject, from_leader=True, is_page=True):
            assert time.monotonic() < limit, f"{len(left)} messages on {subject} are left after {within} s"
            await asyncio.sleep(0.02)

    async def until_gone(self, subject: str, sequence: int, within: float = LIMIT_SECONDS) -> None:
        """Wait until a message was settled."""
        limit = time.monotonic() + within
        while sequence in {raw.sequence for raw in await self.bus.read(subject, from_leader=True)}:
            assert time.monotonic() < limit, f"{subject} #{sequence} is still stored after {within} s"
            await asyncio.sleep(0.02)

    async def leave_room_for(self, stream: str, *, messages: int) -> None:
        """The stream takes so many messages and refuses the next."""
        js = self.bus.nc.jetstream(timeout=5)
        config = (await js.stream_info(stream)).config
        config.max_msgs = messages
        await js.update_stream(config)

    async def past_lease(self) -> None:
        """As long as it takes for every lease that nobody renews to run out: that is the fault, not a wait for it."""
        await asyncio.sleep(LEASE_SECONDS * 1.5)

    async def backlog(self, queue: Queue) -> Backlog:
        for _ in range(10):  # a busy broker may not answer within the two seconds of one try
            if (found := await backlog(self.bus, queue)) is not None:
                return found
        raise AssertionError(f"the broker says nothing about {queue}")


async def store_once(bus: Bus, subject: str, body: bytes, headers: Mapping[str, str] | None) -> Stored:
    """Store a message that has no id, in one try: a busy broker stores what it is late to acknowledge, and a second."""
    await bus.connected.wait()
    reply = await bus.nc.request(subject, body, timeout=LIMIT_SECONDS, headers=dict(headers or {}))
    stored = json.loads(reply.data)
    assert "error" not in stored, stored
    return Stored(stored["seq"], stored.get("duplicate", False))


def _task(task: dict[str, Any]) -> dict[str, Any]:
    orders = task.pop("orders", {})
    return {"tag": "scripted", "description": json.dumps(orders), **task}


@contextlib.asynccontextmanager
async def running(
    folder: Path, *, in_flight: int = 32, lease_seconds: float = LEASE_SECONDS, roles: str = ""
) -> AsyncGenerator[Muster]:
    """A broker that is provisioned for the team of scripted roles, and no service yet."""
    (folder / "team.yaml").write_text(TEAM % (roles, in_flight))
    async with Muster.provisioned(folder / "team.yaml", folder, lease_seconds=lease_seconds) as muster:
        yield muster
