"""Calls of the strange functions, and what the system says of processes."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from muster_agent.isolation.environment import own_environment
from muster_agent.isolation.messages import ToolRun
from muster_agent.isolation.pool import Pool, output_of
from muster_agent.isolation.process import Kind
from muster_agent.isolation.tool import UNHEARD
from muster_testing.waiting import until
from tests.isolation.strange import started

MEMORY_MB = 128
ROOMY_MB = 1024  # for two hundred small processes
LONG = 30.0  # seconds that no call of these tests takes


class Calls:
    """A pool, and short words for calling functions in it."""

    def __init__(self, slots: int = 2, variables: dict[str, str] | None = None) -> None:
        self.pool = Pool(slots, {**own_environment(), **(variables or {})})

    async def use(
        self,
        function: str,
        *,
        seconds: float = LONG,
        role: str = "clerk",
        env: tuple[str, ...] = (),
        memory_mb: int = MEMORY_MB,
        **arguments: Any,
    ) -> Any:
        path = f"tests.isolation.strange:{function}"
        run = ToolRun(function=path, folder=Path(), seconds=seconds, arguments=json.dumps(arguments))
        output = output_of(await self.pool.call(Kind(role, memory_mb, env), run, UNHEARD, seconds))
        try:
            return json.loads(output)
        except ValueError:
            return output  # a text


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def end_all(folder: Path) -> None:
    """End what a failed test would leave behind."""
    for pid in filter(is_alive, started(folder)):
        os.kill(pid, signal.SIGKILL)


async def all_gone(pids: list[int], within: float = 10.0) -> None:
    assert pids
    await until(lambda: not any(map(is_alive, pids)), f"{pids} are gone", within)
