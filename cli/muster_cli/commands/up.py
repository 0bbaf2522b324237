"""`muster up`: a real nats-server and all three services in one process, until Ctrl-C."""

import logging
import os
import secrets
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from muster_agent.team.file import load_team
from muster_agent.team.lookup import find_team_file
from muster_agent.team.role_code import role_code
from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.broker import topology
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
from muster_cli.view.console import console
from muster_cli.view.welcome import Welcome, port_note, welcome_text
from muster_coordinator.coordinator import Coordinator
from muster_protocol.errors import Misconfigured
from muster_protocol.sender import Sender
from muster_supervisor.__main__ import make_supervisor
from muster_worker.__main__ import make_worker

log = logging.getLogger("muster.up")

NATS_PORT = 4222
LOOK_SECONDS = 0.2  # how soon a dead broker is noticed


async def up(given: Namespace, settings: Settings) -> int:
    began = time.monotonic()
    team = load_team(find_team_file(given.team, settings.team_file, Path.cwd()), role_code())
    with Lock(FOLDER, "muster up"):
        set_up_logging("muster", "up", settings.log)
        server = await _start_broker(FOLDER.resolve() / "nats", given.port)
        try:
            await _run_services(given, settings, team, server, began)
        finally:
            forget_address(FOLDER)
            await server.stop()
    console(is_error=True).print("stopped; everything that was asked is kept", style="dim")
    return Exit.DONE


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


async def _run_services(given: Namespace, settings: Settings, team: Team, server: Server, began: float) -> None:
    http_port = free_port_near(given.http_port, settings.http_port, "--http-port", settings.http_host)
    models: dict[str, None] = {}  # in order, and each notice once
    group = await _make_services(server.url, team, given.slots, settings, http_port, models.setdefault)
    address = Address(server.url, http_address(settings.http_host, http_port), team.team, os.getpid())
    welcome = Welcome(
        team,
        address,
        FOLDER.resolve(),
        tuple(models),
        port_note(address.nats_url, NATS_PORT, given.port),
        port_note(address.http_url, settings.http_port, given.http_port),
    )

    def on_ready() -> None:
        write_address(FOLDER, address)
        text = welcome_text(welcome, time.monotonic() - began)
        console().print(text, highlight=False, soft_wrap=True)

    restarts = supervised(keep_running(server, LOOK_SECONDS), "restarting nats-server")
    try:
        await run_until_signal(group, settings, ready=on_ready)
    finally:
        restarts.cancel()


async def _make_services(
    url: str,
    team: Team,
    slots: int | None,
    settings: Settings,
    http_port: int,
    show: Callable[[str], object],
) -> ServiceGroup:
    """Connect each service under its own name, also in traces, and provision."""
    name = secrets.token_hex(2)
    tracings = {kind: Tracing.start(kind, name, settings.trace) for kind in ("supervisor", "worker", "coordinator")}
    buses = [await Bus.connect(url, Sender(kind, name), tracing=tracing) for kind, tracing in tracings.items()]
    roles = [role.name for role in team.roles]
    try:
        await topology.provision(buses[0], topology.Provisioning(), [team.team], team.tags)
        return ServiceGroup(
            [
                make_supervisor(buses[0], team, settings.model_env, show),
                make_worker(buses[1], team, roles, slots, settings.model_env, show),
                Coordinator(buses[2], settings.http_host, http_port),
            ]
        )
    except BaseException:
        for bus in buses:
            await bus.close()  # while the broker runs: afterwards each would log that the broker is away
        raise
