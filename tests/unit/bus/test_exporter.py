"""Spans leave by the protocol that is set, and reach a collector that speaks it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from muster_testing.otlp import Collector

ROOT = Path(__file__).parents[3]
LIMIT_SECONDS = 30
ONE_SPAN = """\
import os
import asyncio
from muster_bus.process.settings import read_settings
from muster_bus.tracing.tracing import Tracing
tracing = Tracing.start("test", "t1", read_settings(os.environ).trace)
request = tracing.request("a request", None)
with tracing.under(request), tracing.span("one span", {}):
    pass
asyncio.run(tracing.stop())
"""


def export(**env: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    subprocess.run([sys.executable, "-c", ONE_SPAN], env=inherited | env, timeout=LIMIT_SECONDS, check=True)


@pytest.fixture
def grpc_collector() -> Generator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.grpc_collector"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_grpc_reaches_a_collector_that_speaks_grpc(grpc_collector: "subprocess.Popen[str]"):
    export(
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{line(grpc_collector)}",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
    )

    assert line(grpc_collector) == "one span"


@pytest.mark.parametrize(
    "protocol",
    [
        {},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": ""},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
    ],
    ids=["nothing set", "empty", "http", "http for traces"],
)
async def test_http_reaches_a_collector_that_speaks_http(protocol: dict[str, str]):
    collector = Collector()
    await collector.start()
    try:
        await asyncio.to_thread(export, **collector.environment, **protocol)
    finally:
        await collector.stop()

    assert [span.name for span in collector.spans] == ["one span"]


def test_a_protocol_without_an_endpoint_changes_nothing():
    export(OTEL_EXPORTER_OTLP_PROTOCOL="nonsense")
