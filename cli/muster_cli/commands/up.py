"""`muster up`: a real nats-server and all three services, the worker in a process of its own, until Ctrl-C."""

import logging
import os
import secrets
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.broker.embedded import Server, is_free, keep_running
from muster_bus.connection import Bus
from muster_bus.process.command import Exit
from muster_bus.process.logging import set_up_logging
from muster_bus.process.service import run_until_signal
from muster_bus.process.settings import Settings
from muster_bus.tracing.tracing import Tracing
from muster_cli.local.folder import FOLDER, Address, Lock, forget_address, write_address
from muster_cli.local.group import ServiceGroup
from muster_cli.local.orphan import end_orphan, pid_option
from muster_cli.local.ports import free_port_near, http_address
from muster_cli.local.provisioning import provision_team
from muster_cli.local.worker_process import EndedAtStart, WorkerProcess
from muster_cli.view.console import console
from muster_cli.view.welcome import Welcome, models_of, port_note, welcome_text
from muster_coordinator.coordinator import Coordinator
from muster_protocol.errors import Misconfigured
from muster_protocol.sender import Sender
from muster_supervisor.__main__ import make_supervisor

log = logging.getLogger("muster.up")

NATS_PORT = 4222
LOOK_SECONDS = 0.2  # how soon a dead broker is noticed


@dataclass(frozen=True, slots=True)
class Up:
    """What one `muster up` runs."""

    team: Team
    models: tuple[str, ...]  # what a person should know about the models in use
    server: Server
    worker: WorkerProcess


async def up(given: Namespace, settings: Settings) -> int:
    began = time.monotonic()
    team_file = find_team_file(given.team_file, settings.team_file, Path.cwd())
    team = load_team(team_file)
    models = models_of(team, settings.model_env)  # a model that cannot be used is an error before anything starts
    with Lock(FOLDER, "muster up"):
        set_up_logging("muster", "up", settings.log)
        server = await _start_broker(FOLDER.resolve() / "nats", given.port)
        worker = _worker(given, settings, team_file, server.url)
        try:
            await worker.launch()  # it imports while the others connect
            await _run_services(given, settings, Up(team, models, server, worker), began)
        except EndedAtStart as ended:
            return ended.code
        finally:
            worker.kill()  # unless it has stopped with the others
            forget_address(FOLDER)
            await server.stop()
    console(is_error=True).print("stopped; everything that was asked is kept", style="dim")
    return Exit.DONE


def _worker(given: Namespace, settings: Settings, team_file: Path, url: str) -> WorkerProcess:
    slots = () if given.slots is None else ("--slots", str(given.slots))
    arguments = ("--team-file", str(team_file.resolve()), *slots)
    return WorkerProcess(secrets.token_hex(2), arguments, url, settings.grace_seconds)


async def _start_broker(store: Path, given_port: int | None) -> Server:
    """On the port that was asked for, or on the first free one; another process may take a free one meanwhile."""
    if end_orphan(store):
        log.warning("stopped the nats-server of a `muster up` that was killed, and took over its files")
    while True:
        port = free_port_near(given_port, NATS_PORT, "--port")
        server = Server(store, port, extra=pid_option(store))
        try:
            await server.start()
        except Misconfigured:
            if given_port is not None or is_free(port):
                raise
            continue
        return server


async def _run_services(given: Namespace, settings: Settings, up: Up, began: float) -> None:
    http_port = free_port_near(given.http_port, settings.http_port, "--http-port", settings.http_host)
    group = await _make_services(settings, up, http_port)
    address = Address(up.server.url, http_address(settings.http_host, http_port), up.team.team, os.getpid())
    welcome = Welcome(
        up.team,
        address,
        FOLDER.resolve(),
        up.models,
        port_note(address.nats_url, NATS_PORT, given.port),
        port_note(address.http_url, settings.http_port, given.http_port),
    )

    def on_ready() -> None:
        write_address(FOLDER, address)
        text = welcome_text(welcome, time.monotonic() - began)
        console().print(text, soft_wrap=True)

    restarts = supervised(keep_running(up.server, LOOK_SECONDS), "restarting nats-server")
    try:
        await run_until_signal(group, settings, ready=on_ready)
    finally:
        restarts.cancel()


async def _make_services(settings: Settings, up: Up, http_port: int) -> ServiceGroup:
    """Connect supervisor and coordinator under the worker's name, each traced as what it is, and provision."""
    tracings = {kind: Tracing.start(kind, up.worker.name, settings.trace) for kind in ("supervisor", "coordinator")}
    buses = [
        await Bus.connect(up.server.url, Sender(kind, up.worker.name), tracing=tracing)
        for kind, tracing in tracings.items()
    ]
    try:
        await provision_team(buses[0], up.team)
        services = [
            make_supervisor(buses[0], up.team, settings, log.debug),
            Coordinator(buses[1], settings.http_host, http_port),
        ]
        return ServiceGroup(services, up.worker)
    except BaseException:
        for bus in buses:
            await bus.close()  # while the broker runs: afterwards each would log that the broker is away
        raise
