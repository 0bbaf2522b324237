"""A real nats-server for a test: running, paused in the middle of its work, running again."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from muster_bus.broker.embedded import Server


@asynccontextmanager
async def running_broker(folder: Path) -> AsyncGenerator[Server]:
    """A broker with its files in `folder` and no streams yet, on a port that was free."""
    server = Server(folder)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def pause(server: Server) -> None:
    """Stop a broker in the middle of whatever it does; return when it stands still."""
    os.kill(server.pid, signal.SIGSTOP)
    os.waitpid(server.pid, os.WUNTRACED)


def resume(server: Server) -> None:
    """Let a paused broker continue."""
    os.kill(server.pid, signal.SIGCONT)
