"""Muster as it is deployed, on one machine: a broker, one supervisor, two workers, one coordinator, and a client."""

import asyncio
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.proc import cpu_seconds, resident_megabytes
from muster_bus.broker import topology
from muster_bus.broker.embedded import Server, free_port
from muster_bus.broker.queues import task_queue
from muster_cli.local.processes import Processes
from muster_client import Client
from muster_protocol.messages import AnswerStatus
from muster_testing.backlog import backlog

TEAM = Path(__file__).with_name("team.yaml")
TEAM_NAME, TAGS = "bench", ("noop", "wait")
SLOTS = 64
WORKERS = ("worker-1", "worker-2")
SERVICES = ("supervisor", *WORKERS, "coordinator")
LIMIT_SECONDS = 60.0


class Muster:
    """The services in processes of their own; the client is here."""

    def __init__(self, server: Server, client: Client, processes: Processes) -> None:
        self._server = server
        self._processes = processes
        self.client = client

    @classmethod
    async def start(cls, server: Server, folder: Path, environment: dict[str, str]) -> Self:
        client = await Client.connect(server.url, team=TEAM_NAME, name="bench")
        await topology.provision(client.bus, topology.Provisioning(), [TEAM_NAME], TAGS)
        muster = cls(server, client, Processes(folder, server.url))
        environment = {"MUSTER_LOG": "quiet", **environment}
        start, team = muster._processes.start, str(TEAM)
        start("supervisor", "supervisor", "--team-file", team, env=environment)
        for worker in WORKERS:
            start(worker, "worker", "--team-file", team, "--role", "noop", "--slots", str(SLOTS), env=environment)
        start("coordinator", "coordinator", "--port", str(free_port()), env=environment)
        await muster._processes.ready(*SERVICES)
        return muster

    async def start_holder(self, slots: int) -> None:
        """One more worker, for tasks that never end by themselves; one that is there already goes on."""
        if "holder" in self._processes:
            return
        words = ("worker", "--team-file", str(TEAM), "--role", "wait", "--slots", str(slots))
        self._processes.start("holder", *words, env={"MUSTER_LOG": "quiet"})
        await self._processes.ready("holder")

    async def start_peer(self) -> None:
        """One more supervisor."""
        self._processes.start("peer", "supervisor", "--team-file", str(TEAM), env={"MUSTER_LOG": "quiet"})
        await self._processes.ready("peer")

    def kill(self, name: str) -> None:
        self._processes.kill(name)

    async def run(self, count: int) -> float:
        """One request of so many no-op tasks; returns the seconds from submit to answer."""
        plan = plan_of(count)
        began = time.perf_counter()
        request_id = await self.client.submit(plan=plan)
        answer = await self.client.answer(request_id, timeout=LIMIT_SECONDS)
        took = time.perf_counter() - began
        if answer.status is not AnswerStatus.DONE or len(answer.tasks) != count:
            raise RuntimeError(f"{request_id} ended as {answer.status}: {answer.text[:300]}")
        return took

    async def open_requests(self, count: int, every: float = 0.0) -> list[str]:
        """Requests that stay open, each waiting for a task that a worker holds; one every so many seconds."""
        plan, request_ids = plan_of(1, "wait"), list[str]()
        for _ in range(count):
            request_ids.append(await self.client.submit(plan=plan))
            await asyncio.sleep(every)
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                held = await backlog(self.client.bus, task_queue(["wait"]))
                if held is not None and held.working == count:
                    return request_ids
                await asyncio.sleep(0.1)

    async def cancel(self, request_ids: list[str]) -> None:
        for request_id in request_ids:
            await self.client.cancel(request_id)
        for request_id in request_ids:
            await self.client.answer(request_id, timeout=LIMIT_SECONDS)

    def cpu_seconds(self) -> dict[str, float]:
        """By service, and of the broker."""
        used = {name: cpu_seconds(self._processes.pid(name)) for name in SERVICES}
        return {**used, "broker": cpu_seconds(self._server.pid)}

    def resident_megabytes(self) -> dict[str, float]:
        return {name: resident_megabytes(self._processes.pid(name)) for name in SERVICES}

    def pid(self, name: str) -> int:
        return self._processes.pid(name)

    async def close(self) -> None:
        await self.client.close()
        await asyncio.to_thread(self._processes.stop_all)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def plan_of(count: int, tag: str = "noop") -> dict[str, Any]:
    """A plan of independent tasks."""
    return {"tasks": [{"id": f"t{number}", "description": f"nothing {number}", "tag": tag} for number in range(count)]}
