"""A team that calls back, and what its tests ask of it."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from muster_bus.receive import open_live
from muster_client.log_lines import line_of
from muster_protocol import subjects
from muster_protocol.messages import EVENT_KINDS, CalledBack
from tests.harness import Muster, running
from tests.receiver import Receiver, receiving

SECRET = "a secret of the tests, long enough"
ENV = {"MUSTER_CALLBACK_SECRET": SECRET}
RULES = "callbacks: {hosts: [127.0.0.1, localhost], http: true, private: [127.0.0.1/32%s]%s}\n"
LOCAL = RULES % (", '::1/128'", "")


@contextlib.asynccontextmanager
async def calling(folder: Path, rules: str = LOCAL) -> AsyncGenerator[Muster]:
    """A broker for a team with these rules and a worker; supervisors are the test's to start."""
    async with running(folder, roles=rules) as muster:
        await muster.start("worker", "w1")
        yield muster


@contextlib.asynccontextmanager
async def calling_back(folder: Path, rules: str = LOCAL) -> AsyncGenerator[tuple[Muster, Receiver]]:
    """The same with a supervisor, and a receiver that takes what is sent."""
    async with calling(folder, rules) as muster, receiving() as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        yield muster, receiver


async def called_back(muster: Muster, request_id: str) -> list[CalledBack]:
    """What came of each try, by the events."""
    stored = await muster.bus.read(subjects.events(request_id), from_leader=True)
    events = [open_live(raw, EVENT_KINDS).body for raw in stored]
    return [event for event in events if isinstance(event, CalledBack)]


async def lines(muster: Muster, request_id: str) -> list[str]:
    return [line_of(0.0, "supervisor/s1", event).message for event in await called_back(muster, request_id)]


async def until_called(muster: Muster) -> None:
    """Wait until no callback is left and no request."""
    await muster.until_settled(subjects.requests("default"))
    await muster.until_settled(subjects.callbacks("default"))
