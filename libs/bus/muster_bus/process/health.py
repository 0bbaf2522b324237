"""The health of a service, and the endpoint that reports it: `/healthz` and `/readyz`."""

import asyncio
import logging
import time
from typing import Protocol

from muster_bus.connection import Bus
from muster_protocol.errors import Misconfigured

log = logging.getLogger("muster.service")

READY_BEAT_SECONDS = 15.0
ALIVE_BEAT_SECONDS = 30.0
PROBE_SECONDS = 5.0  # a probe that sends nothing for this long is closed


class Probed(Protocol):
    """What health is judged by."""

    bus: Bus

    @property
    def last_turn_at(self) -> float: ...


class Health:
    """What the probes ask, answered from what is known already: without a broker a service is alive and not ready."""

    def __init__(self, service: Probed) -> None:
        self._service = service
        self.is_stopping = False

    @property
    def is_alive(self) -> bool:
        has_turned = time.monotonic() - self._service.last_turn_at < ALIVE_BEAT_SECONDS
        return has_turned and (self.is_stopping or not self._service.bus.is_stuck)

    @property
    def is_ready(self) -> bool:
        has_turned = time.monotonic() - self._service.last_turn_at < READY_BEAT_SECONDS
        return has_turned and not self.is_stopping and not self.trouble

    @property
    def trouble(self) -> str:
        """What the service lacks to work, for people; empty when it has all."""
        bus = self._service.bus
        if not bus.connected.is_set():
            return "there is no connection to the broker"
        return bus.lacking or bus.publisher.trouble


async def start_health(health: Health, host: str, port: int) -> asyncio.Server:
    """Serve the health endpoint; Misconfigured says which variable to change when the port is taken."""
    try:
        return await serve_health(health, host, port)
    except OSError as error:
        where = f"MUSTER_HEALTH_PORT: cannot listen on {host}:{port}"
        raise Misconfigured(f"{where}: {error.strerror}; set it to a free port, or to nothing") from None


async def serve_health(health: Health, host: str, port: int) -> asyncio.Server:
    """For services that have no other HTTP server; a framework would cost 13 MB of memory (decision 7)."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                line = (await reader.readline()).decode(errors="replace").split(" ")
                writer.write(_response(health, line[1] if len(line) > 1 else ""))
                await writer.drain()
        except (TimeoutError, OSError):
            log.debug("a health probe closed its connection before it was answered")
        finally:
            writer.close()

    return await asyncio.start_server(answer, host, port)


def _response(health: Health, path: str) -> bytes:
    is_well = {"/healthz": health.is_alive, "/readyz": health.is_ready}.get(path)
    status = "404 Not Found" if is_well is None else "200 OK" if is_well else "503 Service Unavailable"
    reason = health.trouble if path == "/readyz" and not is_well else ""
    text = f"{reason or status[4:].lower()}\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    return f"{head}Connection: close\r\n\r\n{text}".encode()
