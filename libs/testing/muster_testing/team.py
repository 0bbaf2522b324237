"""A team that runs: a real broker, its services in real processes, a client, and a look into the logs of requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from muster_agent.team.file import load_team
from muster_bus.broker.embedded import Server
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_bus.log import read_log
from muster_bus.read_stream import Raw
from muster_client import Client
from muster_protocol import subjects
from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.messages import Answer, ErrorReport, LogBody, Result
from muster_protocol.sender import Sender
from muster_testing.broker import running_broker
from muster_testing.services import Services
from muster_testing.waiting import LIMIT_SECONDS, until_asked

LEASE_SECONDS = 2.0  # short, so that a test that kills a service waits no longer for the next


class RunningTeam(Services):
    """One broker, the services of one team, and a client."""

    def __init__(self, team_file: Path, folder: Path, broker: Server, bus: Bus, client: Client) -> None:
        super().__init__(team_file, folder, broker.url)
        self.broker = broker
        self.bus = bus
        self.client = client

    @classmethod
    @asynccontextmanager
    async def provisioned(
        cls, team_file: Path, folder: Path, *, lease_seconds: float = LEASE_SECONDS
    ) -> AsyncGenerator[Self]:
        """A broker with the team's streams, and no service yet."""
        team = load_team(team_file)
        settings = Provisioning(
            lease_seconds=lease_seconds, ack_wait_seconds=lease_seconds, has_lanes=team.priorities is not None
        )
        async with running_broker(folder / "broker") as broker:
            bus = await Bus.connect(broker.url, Sender("tests", "observer"))
            try:
                await provision(bus, settings, [team.team], team.tags)
                async with await Client.connect(broker.url, team=team.team) as client:
                    running = cls(team_file, folder, broker, bus, client)
                    try:
                        yield running
                    finally:
                        running.kill_all()
            finally:
                await bus.close()

    async def ask(self, text: str | None = None, *, within: float = LIMIT_SECONDS, **fields: Any) -> Answer:
        """Submit a request, with the fields of `Client.submit()`, and wait for its answer."""
        return await self.answer(await self.client.submit(text, **fields), within)

    async def answer(self, request_id: str, within: float = LIMIT_SECONDS) -> Answer:
        return await self.client.answer(request_id, timeout=within)

    async def log(self, request_id: str) -> list[Entry]:
        """Every entry of a request's log, in order."""
        return await read_log(self.bus, request_id, from_leader=True)

    async def entries(self, request_id: str, kind: type[LogBody]) -> list[Entry]:
        return [entry for entry in await self.log(request_id) if isinstance(entry.body, kind)]

    async def results(self, request_id: str) -> list[Result]:
        return [entry.body for entry in await self.log(request_id) if isinstance(entry.body, Result)]

    async def state(self, request_id: str) -> RequestState:
        """What a request's log adds up to now."""
        return fold(request_id, await self.log(request_id))

    async def until_log(self, request_id: str, is_so: Callable[[RequestState], bool]) -> None:
        """Wait until a request's log says so."""

        async def ask() -> bool:
            return is_so(await self.state(request_id))

        await until_asked(ask, f"the log of {request_id} gets there")

    async def errors(self) -> list[Raw]:
        """Every message on `errors`."""
        return await self.bus.read(subjects.ERRORS, from_leader=True)

    async def reasons(self) -> list[str]:
        """The reason of every error report."""
        return [ErrorReport.read(raw.data).reason for raw in await self.errors()]


@asynccontextmanager
async def running_team(
    team_file: Path, folder: Path, *, supervisors: int = 1, workers: int = 1, lease_seconds: float = LEASE_SECONDS
) -> AsyncGenerator[RunningTeam]:
    """A team whose services are ready: supervisor-1, …, worker-1, …; `folder` gets the broker's files and the logs."""
    async with RunningTeam.provisioned(team_file, folder, lease_seconds=lease_seconds) as team:
        names = {
            **{f"supervisor-{n}": "supervisor" for n in range(1, supervisors + 1)},
            **{f"worker-{n}": "worker" for n in range(1, workers + 1)},
        }
        await asyncio.gather(*(team.start(service, name) for name, service in names.items()))
        yield team
