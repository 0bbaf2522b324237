"""A team with one role that thinks with a model which a strict Messages server plays: ten turns, each with a tool."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster_bus.turns import TurnsOfTask
from muster_protocol.messages import Result
from muster_protocol.turns.fold import TaskTurns
from muster_testing.crash import KILLED
from muster_testing.messages_server import CannedReply, MessagesServer, message, running_messages_server, text, tool_use
from muster_testing.waiting import until_asked
from tests.harness import LEASE_SECONDS, Muster

TURNS = 10
READ, WRITTEN = 100, 20  # tokens of each reply
EACH = READ + WRITTEN
TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: thinker, model: claude-sonnet-5-5, max_tokens: 1000, tools: [%s], %s}
limits: {deadline_seconds: 300}
"""


def conversation(turns: int = TURNS, tool: str = "calculate", **arguments: Any) -> list[CannedReply]:
    """Turns with a tool call each, and the answer as the last of them."""
    arguments = arguments or {"expression": "1 + 1"}
    calls = [message(tool_use(f"call_{n}", tool, **arguments), stop="tool_use") for n in range(1, turns)]
    return [*calls, message(text("the answer"))]


@dataclass
class Paying:
    """The team and the server that is paid."""

    muster: Muster
    server: MessagesServer
    dead: list[str] = field(default_factory=list[str])

    async def submit(self, **more: Any) -> str:
        plan = {"tasks": [{"id": "t", "tag": "thinker", "description": "Add one and one"}]}
        return await self.muster.client.submit(plan=plan, **more)

    async def start(self, *names: str) -> None:
        starting = (self.muster.start("worker", name, env=self.server.environment, grace_seconds=5) for name in names)
        await asyncio.gather(*starting)

    async def dies(self, name: str, step: str) -> None:
        """A worker that gets the task and ends at a step of it."""
        self.muster.spawn("worker", name, die_at=step, env=self.server.environment)
        assert await self.muster.ended(name) == KILLED
        self.dead.append(name)

    async def asked(self, count: int) -> None:
        """Wait until the server has been asked so often."""
        await self.muster.until(lambda: len(self.server.requests) >= count, f"{count} calls of the model")

    async def until_results(self, request: str, count: int) -> list[Result]:
        """The results of a request once there are so many."""
        found: list[Result] = []

        async def are_there() -> bool:
            found[:] = await self.muster.results(request)
            return len(found) >= count

        await until_asked(are_there, f"{count} results")
        return found

    async def turns(self, request: str) -> TaskTurns:
        return await TurnsOfTask(self.muster.bus, request, "t").read()

    @property
    def paid(self) -> int:
        """Tokens that the server counts, also those of replies that nobody got."""
        return EACH * len(self.server.requests)


@asynccontextmanager
async def paying(
    folder: Path, script: list[CannedReply], *, tools: str = "calculate", role: Mapping[str, str] | None = None
) -> AsyncGenerator[Paying]:
    """The team with its supervisor, and no worker yet."""
    more = ", ".join(f"{name}: {value}" for name, value in (role or {"max_turns": "10"}).items())
    (folder / "team.yaml").write_text(TEAM % (tools, more))
    async with (
        running_messages_server(*script) as server,
        Muster.provisioned(folder / "team.yaml", folder, lease_seconds=LEASE_SECONDS) as muster,
    ):
        await muster.start("supervisor", "s1")
        yield Paying(muster, server)
