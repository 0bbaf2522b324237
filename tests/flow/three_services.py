"""Supervisor, worker and coordinator in processes of their own, and what their probes say."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster_bus.broker.embedded import free_port
from muster_testing import until_asked
from muster_testing.services import Services

SERVICES = ("supervisor", "worker", "coordinator")


def fetched(url: str) -> tuple[int, str]:
    """Status and text of an HTTP answer; 0: nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=40) as reply:
            return int(reply.status), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@dataclass
class Three:
    """One service of each kind, named by its kind; each may reach the broker by an address of its own."""

    services: Services
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    ports: dict[str, int] = field(default_factory=dict[str, int])

    def spawn(self) -> None:
        """Start them without waiting until they are ready."""
        self.ports = {service: free_port() for service in SERVICES}
        for service, port in self.ports.items():
            env = {"MUSTER_NATS_URL": self.urls.get(service, self.services.url)}
            options = ("--port", str(port)) if service == "coordinator" else ()
            if service != "coordinator":
                env["MUSTER_HEALTH_PORT"] = str(port)
            self.services.spawn(service, service, *options, env=env)

    async def start(self) -> None:
        self.spawn()
        await self.until_ready()

    async def probe(self, service: str, path: str = "/readyz") -> tuple[int, str]:
        return await asyncio.to_thread(fetched, f"http://127.0.0.1:{self.ports[service]}{path}")

    async def until_ready(self, within: float = 60.0) -> None:
        for service in SERVICES:

            async def is_ready(name: str = service) -> bool:
                assert self.services.is_running(name), self.services.service_log(name)[-2000:]
                return (await self.probe(name))[0] == 200

            await until_asked(is_ready, f"{service} is ready", within)

    async def until_unready(self, reason: str, within: float = 60.0) -> None:
        """Until all of them are alive and say why they are not ready."""
        for service in SERVICES:

            async def says_so(name: str = service) -> bool:
                status, text = await self.probe(name)
                return status == 503 and reason in text and (await self.probe(name, "/healthz"))[0] == 200

            await until_asked(says_so, f"{service} is not ready: {reason}", within)
