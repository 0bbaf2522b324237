"""A team in this process with a broker of its own, in a folder that is removed: nothing is left behind."""

import logging
import os
import secrets
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from muster.here import Here
from muster_agent.team.schema import ModelRole, Team
from muster_bus.broker.embedded import Server
from muster_bus.connection import Bus
from muster_bus.process.service import CLOSE_SECONDS, Service, stop_within
from muster_bus.process.settings import Settings, process_settings
from muster_bus.tracing.tracing import Tracing
from muster_cli.local.provisioning import provision_team
from muster_client.client import Client
from muster_protocol.sender import Sender
from muster_supervisor.__main__ import make_supervisor
from muster_supervisor.supervisor import Supervisor
from muster_worker.executor import Executor
from muster_worker.worker import Worker

log = logging.getLogger("muster.team")

STOP_SECONDS = 5.0  # for each service: a running task is cancelled at once, since nobody goes on with it


def environment() -> Mapping[str, str]:
    """The variables of this process that models read; from now on its secrets are redacted."""
    settings = process_settings(os.environ)
    return {**settings.keys, **settings.model_env}


@asynccontextmanager
async def running(team: Team, here: Here) -> AsyncGenerator[Client]:
    """A client of this team while it runs."""
    settings = process_settings(os.environ)
    executor = executor_of(team, here, settings)  # what cannot be imported is an error before anything starts
    with tempfile.TemporaryDirectory(prefix="muster-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder) / "nats")
        async with AsyncExitStack() as stack:
            stack.push_async_callback(server.stop)
            await server.start()
            client = await stack.enter_async_context(await Client.connect(server.url, team=team.team, name="team"))
            await provision_team(client.bus, team)
            name = secrets.token_hex(2)
            worker = Worker(await _bus("worker", name, server.url, settings), executor, slots_of(team))
            await stack.enter_async_context(_started(worker))  # first: a plan is for workers that are here
            bus = await _bus("supervisor", name, server.url, settings)
            await stack.enter_async_context(_started(supervisor_of(bus, team, settings, executor)))
            yield client


def executor_of(team: Team, here: Here, settings: Settings) -> Executor:
    """The roles of the team, loaded; what a person should know about their models is said."""
    with here.importable():
        executor = Executor(team, {**settings.keys, **settings.model_env})
    for notice in executor.notice:
        log.log(_level(team), notice)
    return executor


def supervisor_of(bus: Bus, team: Team, settings: Settings, executor: Executor) -> Supervisor:
    """A supervisor that says of its model what the roles have not said of theirs."""

    def show(notice: str) -> None:
        if notice not in executor.notice:
            log.log(_level(team), notice)

    return make_supervisor(bus, team, settings, show)


def _level(team: Team) -> int:
    """Who wrote `offline` everywhere knows it; without a key `auto` is a surprise."""
    users = (team.supervisor, *(role for role in team.roles if isinstance(role, ModelRole)))
    return logging.INFO if all(user.model == "offline" for user in users) else logging.WARNING


def slots_of(team: Team) -> int:
    return sum(role.slots for role in team.roles)


async def _bus(kind: str, name: str, url: str, settings: Settings) -> Bus:
    return await Bus.connect(url, Sender(kind, name), tracing=Tracing.start(kind, name, settings.trace))


@asynccontextmanager
async def _started(service: Service) -> AsyncGenerator[None]:
    try:
        await service.start()
        yield
    finally:
        await stop_within(service.stop(STOP_SECONDS), STOP_SECONDS, "a service")
        await stop_within(service.bus.close(), CLOSE_SECONDS, "a connection")
