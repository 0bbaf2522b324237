"""A team whose supervisor and one of its roles think with a model that a strict Messages server plays."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from muster_testing.messages_server import CannedReply, MessagesServer, message, running_messages_server, text
from tests.harness import LEASE_SECONDS, Muster

TEAM = """\
team: default
supervisor: {model: claude-sonnet-5-5}
roles:
  - {name: scripted, description: Does what its orders say, run: "muster_testing.roles:scripted"}
  - {name: thinker, description: Thinks, model: claude-sonnet-5-5, tools: [calculate]}
"""
HANGS = replace(message(text("too late")), is_held=True)


def failing() -> CannedReply:
    """A reply that fails its task, so that it is described anew."""
    return message(text("no"), stop="max_tokens")


@dataclass
class Thinking:
    """A team whose supervisor and one role think with a model that hangs."""

    muster: Muster
    server: MessagesServer

    def said(self, number: int) -> str:
        """All of one call, as it was sent."""
        return json.dumps(self.server.requests[number], ensure_ascii=False)

    async def asked(self, count: int = 1) -> None:
        """Wait until so many model calls are under way or over."""
        await self.muster.until(lambda: len(self.server.requests) >= count, f"{count} model calls")


@asynccontextmanager
async def thinking(folder: Path, *script: CannedReply) -> AsyncGenerator[Thinking]:
    (folder / "team.yaml").write_text(TEAM)
    async with (
        running_messages_server(*script) as server,
        Muster.provisioned(folder / "team.yaml", folder, lease_seconds=LEASE_SECONDS) as muster,
    ):
        env = server.environment
        await asyncio.gather(muster.start("worker", "w1", env=env), muster.start("supervisor", "s1", env=env))
        yield Thinking(muster, server)
