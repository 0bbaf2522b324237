"""`muster supervisor`, `worker`, `coordinator` and `provision`: one service each, until it is told to stop."""

import json
import logging
import os
import secrets
import socket
from argparse import Namespace
from collections.abc import Callable

from muster_agent.models.port import choose_model
from muster_agent.team.file import Team, load_team
from muster_bus import settings, telemetry
from muster_bus.connection import Bus
from muster_bus.service import GRACE_SECONDS, Service, run_until_signal, set_up_logging
from muster_cli.exits import Exit
from muster_cli.local.folder import nats_url
from muster_cli.local.team_file import team_file
from muster_protocol.headers import Sender
from muster_protocol.subjects import as_id

log = logging.getLogger("muster.service")

Say = Callable[[str], None]  # what a person should be told about the models in use

CONNECT_SECONDS = 30.0  # services and broker often start at the same moment
HTTP_HOST = "127.0.0.1"
HTTP_PORT = 8080


async def supervisor(given: Namespace) -> int:
    team = load_team(team_file(given.team))
    return await _run("supervisor", given.name, lambda bus: make_supervisor(bus, team))


async def worker(given: Namespace) -> int:
    team = load_team(team_file(given.team))
    for role in given.role or ():
        team.role(role)  # an unknown name is an error before anything starts
    return await _run("worker", given.name, lambda bus: make_worker(bus, team, given.role, given.slots))


async def coordinator(given: Namespace) -> int:
    host = given.host or http_host()
    port = given.port or settings.port("MUSTER_HTTP_PORT") or HTTP_PORT
    return await _run("coordinator", given.name, lambda bus: make_coordinator(bus, host, port))


async def provision(given: Namespace) -> int:
    from muster_bus import topology

    team = load_team(team_file(given.team))
    set_up_logging("provision", "")
    bus = await Bus.connect(nats_url(), Sender("provision", instance_name(None)), timeout=10.0)
    try:
        await topology.provision(bus, topology.Provisioning(replicas=given.replicas), [team.team], team.tags)
    finally:
        await bus.close()
    notice = {"nats_url": nats_url(), "team": team.team, "tags": team.tags, "replicas": given.replicas}
    text = f"team {team.team} is provisioned at {nats_url()}: tags {', '.join(team.tags)}"
    print(json.dumps(notice) if given.json else text)
    return Exit.DONE


def make_supervisor(bus: Bus, team: Team, say: Say = log.info) -> Service:
    from muster_supervisor.supervisor import Supervisor

    model = choose_model(team.supervisor.model, os.environ, team.prices, team.supervisor.offline_seconds)
    if model.notice:
        say(model.notice)
    return Supervisor(bus, team, model)


def make_worker(bus: Bus, team: Team, roles: list[str] | None, slots: int | None, say: Say = log.info) -> Service:
    from muster_worker.executor import Executor
    from muster_worker.worker import Worker

    chosen = [team.role(name) for name in roles] if roles else team.roles
    executor = Executor(team, os.environ, [role.name for role in chosen])
    for notice in executor.notice:
        say(notice)
    return Worker(bus, executor, slots or sum(role.slots for role in chosen))


def make_coordinator(bus: Bus, host: str, port: int) -> Service:
    from muster_coordinator.coordinator import Coordinator

    return Coordinator(bus, host, port)


def instance_name(given: str | None) -> str:
    """What tells this process from all others that ever wrote to the log."""
    if given:
        return as_id(given)
    host = "".join(c if c.isalnum() or c == "-" else "-" for c in socket.gethostname().partition(".")[0])
    return f"{host[:40].strip('-') or 'host'}-{secrets.token_hex(2)}"


def http_host() -> str:
    """Where the coordinator listens unless it is told otherwise."""
    return os.environ.get("MUSTER_HTTP_HOST") or HTTP_HOST


async def _run(kind: str, given_name: str | None, make: Callable[[Bus], Service]) -> int:
    """Connect, start, say so on standard output, and stay until a signal."""
    grace_seconds = settings.seconds("MUSTER_GRACE_SECONDS", GRACE_SECONDS)
    sender = Sender(kind, instance_name(given_name))
    set_up_logging(kind, sender.instance)
    telemetry.start(kind, sender.instance)
    url = nats_url()
    log.info("connecting to %s", url)
    bus = await Bus.connect(url, sender, timeout=CONNECT_SECONDS)
    is_json = "json" in os.environ.get("MUSTER_LOG", "")
    line = json.dumps({"ready": str(sender)}) if is_json else f"{sender} is ready"
    await run_until_signal(make(bus), grace_seconds=grace_seconds, ready=lambda: print(line, flush=True))
    return Exit.DONE
