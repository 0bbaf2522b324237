"""The life of a service: start, health, signals, and a stop in which every step has a limit."""

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from muster_bus import settings, telemetry
from muster_bus.connection import Bus
from muster_protocol.errors import Misconfigured

log = logging.getLogger("muster.service")

GRACE_SECONDS = 20.0
READY_BEAT_SECONDS = 15.0
ALIVE_BEAT_SECONDS = 30.0


class Service(Protocol):
    """What supervisor, worker and coordinator have in common."""

    bus: Bus

    async def start(self) -> None: ...

    async def stop(self, grace_seconds: float) -> None:
        """Close the pulls, finish or hand back what runs; within the grace time."""
        ...

    @property
    def last_turn_at(self) -> float:
        """When the service's own loop last turned, by the monotonic clock."""
        ...


class Health:
    """What the probes ask, answered from what is known already: neither asks the broker."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.is_stopping = False

    @property
    def is_alive(self) -> bool:
        return time.monotonic() - self._service.last_turn_at < ALIVE_BEAT_SECONDS

    @property
    def is_ready(self) -> bool:
        has_turned = time.monotonic() - self._service.last_turn_at < READY_BEAT_SECONDS
        return has_turned and self._service.bus.connected.is_set() and not self.is_stopping


async def serve_health(health: Health, host: str, port: int) -> asyncio.Server:
    """`/healthz` and `/readyz` for services that have no other door; twenty lines spare the memory of a framework."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(5.0):
                line = (await reader.readline()).decode(errors="replace").split(" ")
                path = line[1] if len(line) > 1 else ""
                is_well = {"/healthz": health.is_alive, "/readyz": health.is_ready}.get(path)
                status = "404 Not Found" if is_well is None else "200 OK" if is_well else "503 Service Unavailable"
                text = f"{status[4:].lower()}\n"
                head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n{text}".encode())
                await writer.drain()
        except (TimeoutError, OSError):
            log.debug("a probe went away")
        finally:
            writer.close()

    return await asyncio.start_server(answer, host, port)


async def run_until_signal(
    service: Service, *, grace_seconds: float = GRACE_SECONDS, ready: Callable[[], None] | None = None
) -> None:
    """Start, wait for SIGTERM or SIGINT, stop. A second signal does not wait."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    health = Health(service)
    server: asyncio.Server | None = None
    try:
        server = await _health_server(health)
        if await _starts(service, stopping):
            _tune_gc()
            if ready is not None:
                ready()
            await stopping.wait()
            log.info("stopping: what runs has %g s to end; a second signal ends it at once", grace_seconds)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: os._exit(130))
    finally:
        health.is_stopping = True
        await stop_within(service.stop(grace_seconds), grace_seconds + 3.0, "the service")
        if server is not None:
            server.close()
        await stop_within(service.bus.close(), 4.0, "the connection")
        await stop_within(asyncio.to_thread(telemetry.stop), 4.0, "the exporter")


async def _starts(service: Service, stopping: asyncio.Event) -> bool:
    """Start, unless a signal comes first: a service that waits for its streams must not be deaf meanwhile."""
    starting = asyncio.ensure_future(service.start())
    told = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    await asyncio.wait({starting}, timeout=1.0)
    return False


async def leave(code: int) -> int:
    """The last step of a process. The end of the loop waits for every task, also for one that refuses to end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others and (await asyncio.wait(others, timeout=1.0))[1]:
        log.warning("something that runs here refuses to stop: leaving without it")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(code)
    return code


def _tune_gc() -> None:
    """What exists after the start stays; short-lived messages should not make the collector look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1000)  # a sixth of the CPU per task went into collections


async def _health_server(health: Health) -> asyncio.Server | None:
    port = settings.port("MUSTER_HEALTH_PORT")
    if port is None:
        return None
    host = os.environ.get("MUSTER_HTTP_HOST") or "127.0.0.1"
    try:
        return await serve_health(health, host, port)
    except OSError as error:
        where = f"MUSTER_HEALTH_PORT: cannot listen on {host}:{port}"
        raise Misconfigured(f"{where}: {error.strerror}; set it to a free port, or to nothing") from None


async def stop_within(step: Awaitable[None], seconds: float, what: str) -> None:
    """One step of a stop, which goes on with the next whatever happens."""
    try:
        async with asyncio.timeout(seconds):
            await step
    except TimeoutError:
        log.warning("%s did not stop within %g s", what, seconds)
    except Exception:
        log.exception("%s did not stop cleanly", what)


def set_up_logging(service: str, instance: str) -> None:
    """Lines for people, or JSON when MUSTER_LOG=json; to stderr, since stdout belongs to answers."""
    words = os.environ.get("MUSTER_LOG", "text").split(",")
    handler = logging.StreamHandler(sys.stderr)
    if "json" in words:
        handler.setFormatter(_JsonLines(service, instance))
    else:
        handler.setFormatter(logging.Formatter(f"%(asctime)s {service}-{instance}  %(message)s", "%H:%M:%S"))
    root = logging.getLogger("muster")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(logging.DEBUG if "debug" in words else logging.WARNING if "quiet" in words else logging.INFO)


class _JsonLines(logging.Formatter):
    def __init__(self, service: str, instance: str) -> None:
        super().__init__()
        self._who = {"service": service, "instance": instance}

    def format(self, record: logging.LogRecord) -> str:
        import json

        from opentelemetry import trace

        context = trace.get_current_span().get_span_context()
        line: dict[str, object] = {
            "time": record.created,
            "level": record.levelname.lower(),
            **self._who,
            "message": record.getMessage(),
        }
        if context.is_valid:
            line |= {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
