"""What the demo runs: a real nats-server and every service in its own process, in an empty folder on free ports."""

import asyncio
import shutil
import time
from pathlib import Path

from muster_agent.team.file import load_team
from muster_agent.team.lookup import sample_team_file
from muster_bus.background import supervised
from muster_bus.broker import topology
from muster_bus.broker.embedded import Server, free_port, keep_running
from muster_bus.process.settings import Settings, TraceSettings
from muster_cli.connect import connect
from muster_cli.local.orphan import end_orphan, pid_option
from muster_cli.local.processes import Processes
from muster_client import Client

LEASE_SECONDS = 2.0  # short, so that a takeover can be watched
KEPT = ("lock",)

# The demo is the same everywhere: no key is spent, and the settings of a deployment do not apply to it.
ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "",
    "ANTHROPIC_API_KEY_FILE": "",
    "MUSTER_HEALTH_PORT": "",
    "MUSTER_HTTP_HOST": "",
    "MUSTER_GRACE_SECONDS": "4",
}


class DemoEnvironment:
    """Everything that the demo runs."""

    def __init__(self, folder: Path, trace: TraceSettings, supervisors: int, workers: int = 2) -> None:
        self._trace = trace
        self.folder = folder.resolve()
        self.server = Server(self.folder / "nats", extra=pid_option(self.folder / "nats"))
        self.processes = Processes(self.folder, self.server.url)
        self.http_port = free_port()
        self._team_file = sample_team_file()
        self.team = load_team(self._team_file)
        self.services = {
            **{f"supervisor-{n}": ("supervisor", "--name", str(n)) for n in range(1, supervisors + 1)},
            **{f"worker-{n}": ("worker", "--name", str(n)) for n in range(1, workers + 1)},
            "coordinator": ("coordinator", "--name", "1", "--port", str(self.http_port)),
        }
        self._client: Client | None = None
        self._restarting: asyncio.Task[None] | None = None

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    async def start(self) -> float:
        """Returns the seconds it took."""
        began = time.monotonic()
        _empty(self.folder)
        await self.server.start()
        self.processes.url = self.server.url  # its port is known by now
        for name, arguments in self.services.items():
            team = () if name == "coordinator" else ("--team-file", str(self._team_file))
            self.processes.start(name, *arguments, *team, env=ENVIRONMENT)
        settings = Settings(nats_url=self.server.url, trace=self._trace)
        self._client = await connect(settings, self.team.team, is_traced=True)
        leases = topology.Provisioning(lease_seconds=LEASE_SECONDS, ack_wait_seconds=LEASE_SECONDS)
        await topology.provision(self._client.bus, leases, [self.team.team], self.team.tags)
        await self.processes.ready(*self.services)
        return time.monotonic() - began

    def restart_broker(self, pause_seconds: float) -> None:
        """Kill it now; it comes back by itself, on the same port and the same files."""
        self.server.kill()
        self._restarting = supervised(keep_running(self.server, pause_seconds), "restarting nats-server")

    async def stop(self) -> None:
        """Stop everything that was started."""
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        if self._client is not None:
            await self._client.close()
        await asyncio.to_thread(self.processes.stop_all)
        await self.server.stop()


def _empty(folder: Path) -> None:
    """Remove what the last demo left; the server of a demo that was killed is stopped first."""
    end_orphan(folder / "nats")
    for path in folder.iterdir():
        if path.name in KEPT:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
