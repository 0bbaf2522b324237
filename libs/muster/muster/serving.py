"""A team in this process for a broker that runs elsewhere: a supervisor and a worker, until a signal."""

import asyncio
import os

from muster.here import Here
from muster.running import executor_of, slots_of, supervisor_of
from muster_agent.team.schema import Team
from muster_bus.connection import Bus
from muster_bus.process.logging import set_up_logging
from muster_bus.process.service import Service, instance_name, run_until_signal, stop_within
from muster_bus.process.settings import Settings, process_settings
from muster_bus.tracing.tracing import Tracing
from muster_cli.local.provisioning import provision_team
from muster_protocol.sender import Sender
from muster_worker.worker import Worker


class Together:
    """A worker and a supervisor as one service. They provision first: a team that is written in Python has no file."""

    def __init__(self, team: Team, worker: Service, supervisor: Service) -> None:
        self.bus = worker.bus
        self._team = team
        self._worker, self._supervisor = worker, supervisor

    @property
    def last_turn_at(self) -> float:
        return min(self._worker.last_turn_at, self._supervisor.last_turn_at)

    async def start(self) -> None:
        await asyncio.gather(self._worker.bus.open(), self._supervisor.bus.open())
        await provision_team(self.bus, self._team)
        await self._worker.start()
        await self._supervisor.start()

    async def stop(self, grace_seconds: float) -> None:
        services = (self._worker, self._supervisor)
        await asyncio.gather(*(stop_within(one.stop(grace_seconds), grace_seconds, "a service") for one in services))
        await self._supervisor.bus.close()


async def serve(team: Team, here: Here) -> None:
    """Run them until SIGTERM or Ctrl-C; log as services do, and say when they are ready."""
    settings = process_settings(os.environ)
    name = instance_name(None)
    set_up_logging("team", name, settings.log)
    executor = executor_of(team, here, settings)
    worker = Worker(_bus("worker", name, settings), executor, slots_of(team))
    supervisor = supervisor_of(_bus("supervisor", name, settings), team, settings, executor)
    ready = f"team {team.team} is ready"
    await run_until_signal(Together(team, worker, supervisor), settings, ready=lambda: print(ready, flush=True))


def _bus(kind: str, name: str, settings: Settings) -> Bus:
    tracing = Tracing.start(kind, name, settings.trace)
    return Bus.unconnected(settings.broker_url, Sender(kind, name), tracing=tracing, access=settings.access)
