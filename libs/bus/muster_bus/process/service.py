"""The life of a service: connect, start, run until a signal, and stop with a limit for every step."""

import asyncio
import gc
import json
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Protocol

from muster_bus.connection import Bus
from muster_bus.process.health import Health, start_health
from muster_bus.process.logging import set_up_logging
from muster_bus.process.settings import Settings
from muster_bus.tracing.tracing import Tracing
from muster_protocol.sender import Sender
from muster_protocol.subjects import as_id

log = logging.getLogger("muster.service")

CLOSE_SECONDS = 8.0  # for the connection, and for its exporter, which gives up after three
OVERTIME_SECONDS = 3.0  # beyond the grace time, for a service that does not keep to it
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Service(Protocol):
    """What supervisor, worker and coordinator have in common."""

    bus: Bus

    async def start(self) -> None:
        """Open the bus, however long that takes, and begin."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Close the pulls, finish or hand back what runs; within the grace time."""
        ...

    @property
    def last_turn_at(self) -> float:
        """When the service's own loop last turned, by the monotonic clock."""
        ...


async def run_service(kind: str, name: str | None, settings: Settings, make: Callable[[Bus], Service]) -> int:
    """Make the service, connect it, print that it is ready, and run it until a signal; returns the exit code."""
    sender = Sender(kind, instance_name(name))
    out, errors = sys.stdout, sys.stderr
    set_up_logging(kind, sender.instance, settings.log, owns_stdout=True)
    tracing = Tracing.start(kind, sender.instance, settings.trace)
    bus = Bus.unconnected(settings.broker_url, sender, tracing=tracing, access=settings.access)
    line = json.dumps({"ready": str(sender)}) if settings.log.is_json else f"{sender} is ready"
    try:
        await run_until_signal(make(bus), settings, ready=lambda: print(line, file=out, flush=True))
    finally:
        if not settings.log.is_json:
            sys.stdout, sys.stderr = out, errors  # the last line of a process that fails is no line of its log
    return 0


def instance_name(given: str | None) -> str:
    """The name of this process, different from all others that ever wrote to the log."""
    if given:
        return as_id(given)
    host = "".join(c if c.isalnum() or c == "-" else "-" for c in socket.gethostname().partition(".")[0])
    return f"{host[:40].strip('-') or 'host'}-{secrets.token_hex(2)}"


async def run_until_signal(service: Service, settings: Settings, *, ready: Callable[[], None] | None = None) -> None:
    """Start, wait for SIGTERM or SIGINT, stop. A second signal ends the process at once."""
    stopping = asyncio.Event()
    _on_signal(stopping.set)
    health = Health(service)
    server: asyncio.Server | None = None
    try:
        if settings.health_port is not None:
            server = await start_health(health, settings.http_host, settings.health_port)
        if await _start_unless(stopping, service):
            _tune_gc()
            if ready is not None:
                ready()
            await stopping.wait()
            log.info("stopping within %g s; a second signal ends the process at once", settings.grace_seconds)
        _on_signal(lambda: os._exit(130))
    finally:
        health.is_stopping = True
        await _stop(service, server, settings.grace_seconds)


def _on_signal(action: Callable[[], object]) -> None:
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, action)


async def _start_unless(stopping: asyncio.Event, service: Service) -> bool:
    """Start the service unless a signal comes first: the start waits for the broker and its streams."""
    starting = asyncio.ensure_future(service.start())
    signalled = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({starting, signalled}, return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    await asyncio.wait({starting}, timeout=1.0)
    return False


async def _stop(service: Service, server: asyncio.Server | None, grace_seconds: float) -> None:
    await stop_within(service.stop(grace_seconds), grace_seconds + OVERTIME_SECONDS, "the service")
    if server is not None:
        server.close()
    await stop_within(service.bus.close(), CLOSE_SECONDS, "the connection")


async def stop_within(step: Awaitable[None], seconds: float, what: str) -> None:
    """One step of a stop, which goes on with the next whatever happens."""
    try:
        async with asyncio.timeout(seconds):
            await step
    except TimeoutError:
        log.warning("%s did not stop within %g s", what, seconds)
    except Exception:
        log.exception("%s did not stop cleanly", what)


async def end_process(code: int) -> int:
    """The last step of a process: the end of the event loop would wait for ever for a task that does not end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others and (await asyncio.wait(others, timeout=1.0))[1]:
        log.warning("a background task does not stop when it is cancelled: the process ends without it")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(code)
    return code


def _tune_gc() -> None:
    """What exists after the start stays; short-lived messages should not make the collector look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1000)  # a sixth of the CPU per task went into collections
