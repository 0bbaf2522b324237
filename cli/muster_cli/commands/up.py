"""`muster up`: a real nats-server and all three services in one process, until Ctrl-C."""

import asyncio
import json
import logging
import os
import secrets
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from muster_agent.team.file import Team, load_team
from muster_bus import settings, telemetry, topology
from muster_bus.background import supervised
from muster_bus.connection import Bus
from muster_bus.embedded import Server, is_free, keep_running
from muster_bus.service import GRACE_SECONDS, Service, run_until_signal, set_up_logging, stop_within
from muster_cli.commands.services import (
    HTTP_HOST,
    HTTP_PORT,
    Say,
    http_host,
    make_coordinator,
    make_supervisor,
    make_worker,
)
from muster_cli.exits import Exit
from muster_cli.local.folder import FOLDER, Address, Lock, command, forget_address, write_address
from muster_cli.local.orphan import end_orphan, pid_option
from muster_cli.local.team_file import team_file
from muster_cli.view.console import console
from muster_protocol.errors import Misconfigured
from muster_protocol.headers import Sender

log = logging.getLogger("muster.up")

NATS_PORT = 4222
PORTS_TRIED = 50
LOOK_SECONDS = 0.2  # how soon a dead broker is noticed

WELCOME = """\
[bold green]Muster is up[/] after {seconds:.1f} s: team [bold]{team}[/] with {roles}

  NATS   [bold]{nats}[/]{nats_note}
  HTTP   [bold]{http}[/]{http_note}
  files  {folder}
  model  {model}

Ask it something, from another terminal in this folder:

  {muster} ask "Compare AWS, Azure and Google Cloud"

or from anywhere:

  nats -s {nats} pub requests.{team} '{{"text": "Compare AWS and Azure"}}'
  curl -s {http}/v1/requests -H 'content-type: application/json' -d '{body}'

Ctrl-C stops it; what was asked is kept in {folder}.
"""


class ServiceGroup:
    """All services of one process, started and stopped as one."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self.bus = services[0].bus

    @property
    def last_turn_at(self) -> float:
        return min(service.last_turn_at for service in self._services)

    async def start(self) -> None:
        await asyncio.gather(*(service.start() for service in self._services))

    async def stop(self, grace_seconds: float) -> None:
        stops = (stop_within(service.stop(grace_seconds), grace_seconds, "a service") for service in self._services)
        await asyncio.gather(*stops)
        await asyncio.gather(*(service.bus.close() for service in self._services[1:]))


async def up(given: Namespace) -> int:
    began = time.monotonic()
    team = load_team(team_file(given.team))
    grace_seconds = settings.seconds("MUSTER_GRACE_SECONDS", GRACE_SECONDS)
    usual, host = settings.port("MUSTER_HTTP_PORT") or HTTP_PORT, http_host()
    with Lock(FOLDER, "muster up"):
        set_up_logging("muster", "up")
        telemetry.start("up", "up")
        store = FOLDER.resolve() / "nats"
        if end_orphan(store):
            log.warning("a killed `muster up` left its nats-server behind; it is stopped, and its files are taken over")
        server = await _broker(store, given.port)
        try:
            http_port = free_port_near(given.http_port, usual, "--http-port", host)
            notice: dict[str, None] = {}  # in order, and each thing once
            group = await _service_group(server.url, team, given.slots, (host, http_port), notice.setdefault)
            address = Address(server.url, reachable(host, http_port), team.team, os.getpid())
            notes = (_note(server.url, NATS_PORT, given.port), _note(address.http_url, usual, given.http_port))

            def welcome() -> None:
                _welcome(team, address, tuple(notice), notes, time.monotonic() - began)

            await _stay(group, server, grace_seconds, welcome)
        finally:
            forget_address(FOLDER)
            await server.stop()
    console(is_error=True).print("stopped; everything that was asked is kept", style="dim")
    return Exit.DONE


async def _broker(store: Path, given: int | None) -> Server:
    """On the port that was asked for, or on the first one that nobody else was quicker to take."""
    while True:
        port = free_port_near(given, NATS_PORT, "--port")
        server = Server(store, port, extra=pid_option(store))
        try:
            await server.start()
        except Misconfigured:
            if given is not None or is_free(port):
                raise
            continue
        return server


async def _service_group(url: str, team: Team, slots: int | None, http: tuple[str, int], say: Say) -> ServiceGroup:
    """Connect each service under its own name, and provision."""
    name = secrets.token_hex(2)
    buses = [await Bus.connect(url, Sender(service, name)) for service in ("supervisor", "worker", "coordinator")]
    try:
        await topology.provision(buses[0], topology.Provisioning(), [team.team], team.tags)
        return ServiceGroup(
            [
                make_supervisor(buses[0], team, say),
                make_worker(buses[1], team, None, slots, say),
                make_coordinator(buses[2], *http),
            ]
        )
    except BaseException:
        for bus in buses:
            await bus.close()  # before the broker goes: nobody is to complain that it is away
        raise


async def _stay(group: ServiceGroup, server: Server, grace_seconds: float, welcome: Callable[[], None]) -> None:
    guard = supervised(keep_running(server, LOOK_SECONDS), "the watch over nats-server")
    try:
        await run_until_signal(group, grace_seconds=grace_seconds, ready=welcome)
    finally:
        guard.cancel()


def _welcome(team: Team, address: Address, notice: tuple[str, ...], notes: tuple[str, str], seconds: float) -> None:
    write_address(FOLDER, address)
    text = WELCOME.format(
        muster=command(),
        seconds=seconds,
        team=team.team,
        roles=", ".join(role.name for role in team.roles),
        nats=address.nats_url,
        nats_note=notes[0],
        http=address.http_url,
        http_note=notes[1],
        folder=FOLDER.resolve(),
        model="; ".join(notice) or "as the team file says",
        body=json.dumps({"text": "Compare AWS and Azure"} | ({} if team.team == "default" else {"team": team.team})),
    )
    console().print(text, highlight=False, soft_wrap=True)


def _note(url: str, usual: int, given: int | None) -> str:
    """Why it is not the usual port, unless the user chose another."""
    return "" if given is not None or url.endswith(f":{usual}") else f"   [dim](port {usual} is not free)[/]"


def reachable(host: str, port: int) -> str:
    """The address at which this machine reaches what listens on a host: every interface is also its own."""
    host = {"0.0.0.0": HTTP_HOST, "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def free_port_near(given: int | None, usual: int, option: str, host: str = "127.0.0.1") -> int:
    """The port that was asked for, or an error; else the usual one, or the next that is free."""
    if given is not None:
        if not is_free(given, host):
            raise Misconfigured(
                f"port {given} is in use; name another with {option}, or none to take the next free one"
            )
        return given
    for port in range(usual, usual + PORTS_TRIED):
        if is_free(port, host):
            return port
    raise Misconfigured(f"no port from {usual} to {usual + PORTS_TRIED - 1} is free; name one with {option}")
