"""A service in a process of its own for the tests; `--die-at` ends it as a crash would, at one exact step."""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from muster_agent.models.port import choose_model
from muster_agent.team.file import load_team
from muster_bus import telemetry
from muster_bus.connection import Bus
from muster_bus.lease import Lease
from muster_bus.log import RequestLog
from muster_bus.logging import set_up_logging
from muster_bus.service import Service, leave, run_until_signal
from muster_bus.settings import Settings, read_settings
from muster_protocol.headers import Sender
from muster_protocol.messages import Request


def die_at(point: str) -> None:
    """`before:KIND` or `after:KIND` of a log entry, `before:ack`, or `before:read` of a request."""
    when, _, what = point.partition(":")
    if what == "ack":
        _die_before(Lease, "ack")
        return
    if what == "read":
        _die_before(Request, "read")
        return

    def is_meant(arguments: tuple[Any, ...]) -> bool:
        return arguments[1].kind == what

    _replace(RequestLog, "append", when, is_meant)
    _replace(RequestLog, "compare_and_set", when, is_meant)


def _die_before(owner: type, name: str) -> None:
    def end(_: object) -> None:
        os._exit(137)

    setattr(owner, name, end)


def _replace(owner: type, name: str, when: str, is_meant: Callable[[tuple[Any, ...]], bool]) -> None:
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def wrapped(*arguments: Any, **named: Any) -> Any:
        if is_meant(arguments) and when == "before":
            os._exit(137)
        done = await method(*arguments, **named)
        if is_meant(arguments):
            os._exit(137)
        return done

    setattr(owner, name, wrapped)


async def serve(options: argparse.Namespace) -> None:
    settings = replace(read_settings(os.environ), grace_seconds=options.grace)
    set_up_logging(options.service, options.instance, settings.log)
    telemetry.start(options.service, options.instance, settings.otel_env)
    bus = await Bus.connect(options.url, Sender(options.service, options.instance))
    await run_until_signal(service_of(options, settings, bus), settings)
    await leave(0)


def service_of(options: argparse.Namespace, settings: Settings, bus: Bus) -> Service:
    team = load_team(options.team)
    match options.service:
        case "supervisor":
            from muster_supervisor.supervisor import Supervisor

            return Supervisor(bus, team, choose_model("offline", settings.model_env))
        case "worker":
            from muster_worker.executor import Executor
            from muster_worker.worker import Worker

            return Worker(bus, Executor(team, settings.model_env, options.role or None), options.slots)
        case "coordinator":
            from muster_coordinator.coordinator import Coordinator

            return Coordinator(bus, "127.0.0.1", options.port)
        case _:
            raise SystemExit(f"no service {options.service}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("service")
    parser.add_argument("instance")
    parser.add_argument("--url", required=True)
    parser.add_argument("--team", required=True)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--role", action="append")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--die-at")
    options = parser.parse_args()
    if options.die_at:
        die_at(options.die_at)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
