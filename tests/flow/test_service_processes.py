"""Each service starts as `python -m`, reads the environment, and does its work."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from muster_bus.broker.embedded import free_port
from muster_testing.otlp import Collector
from tests.flow.command_line import read_until
from tests.harness import ROOT, Muster

LIMIT_SECONDS = 60
PACKAGES = ("muster_supervisor", "muster_worker", "muster_coordinator")
NOWHERE = "nats://127.0.0.1:9"  # no broker answers: a service waits for it
OURS = ("MUSTER_", "ANTHROPIC_", "OTEL_")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Generator[Start]:
    """Starts `python -m PACKAGE ARGUMENTS` with these variables; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(package: str, *arguments: str, **env: str) -> subprocess.Popen[str]:
        with (tmp_path / f"{package}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", package, *arguments],
                cwd=ROOT,
                env={**CLEAN, "MUSTER_TEST_FOLDER": str(tmp_path), **env},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        started.append(process)
        return process

    yield run
    for process in started:
        with process:
            process.kill()


async def test_services_started_as_modules_answer_a_request_and_trace_under_the_names_that_are_set(
    muster: Muster, collector: Collector, start: Start
) -> None:
    common = {
        "MUSTER_NATS_URL": muster.broker.url,
        "MUSTER_TEAM_FILE": str(muster.folder / "team.yaml"),
        **collector.environment,
    }
    http_port, health_port = free_port(), free_port()
    supervisor = start("muster_supervisor", "--name", "s1", OTEL_SERVICE_NAME="our-supervisor", **common)
    worker = start(
        "muster_worker",
        *("--role", "scripted", "--slots", "2", "--name", "w1"),
        MUSTER_LOG="json",
        MUSTER_HEALTH_PORT=str(health_port),
        OTEL_RESOURCE_ATTRIBUTES="service.name=our-worker",
        **common,
    )
    coordinator = start("muster_coordinator", "--port", str(http_port), "--name", "c1", **common)
    services = (supervisor, worker, coordinator)
    lines = [(await asyncio.to_thread(read_until, process, "ready")) for process in services]

    assert lines == ["supervisor/s1 is ready\n", '{"ready": "worker/w1"}\n', "coordinator/c1 is ready\n"]
    assert (await asyncio.to_thread(_get, f"http://127.0.0.1:{health_port}/readyz"))[0] == 200
    body = {"plan": {"tasks": [{"id": "a", "tag": "scripted", "description": "{}"}]}}
    request_id = await asyncio.to_thread(_post, f"http://127.0.0.1:{http_port}/v1/requests", body)
    _, answer = await asyncio.to_thread(_get, f"http://127.0.0.1:{http_port}/v1/requests/{request_id}/answer?wait=30")
    assert json.loads(answer)["status"] == "done"
    names = {"our-supervisor", "our-worker", "muster-coordinator"}
    await muster.until(lambda: {span.service for span in collector.spans} == names, "spans of all services came")

    for process in services:
        process.send_signal(signal.SIGTERM)
    assert [await asyncio.to_thread(process.wait, LIMIT_SECONDS) for process in services] == [0, 0, 0]


def test_credentials_that_are_not_there_are_one_line_that_names_them(start: Start, tmp_path: Path):
    missing = str(tmp_path / "missing")
    process = start("muster_coordinator", MUSTER_NATS_USER_FILE=missing)

    assert process.wait(LIMIT_SECONDS) == 2, _log(tmp_path, "muster_coordinator")
    *before, last = _log(tmp_path, "muster_coordinator").splitlines()
    assert last == f"muster: MUSTER_NATS_USER_FILE: cannot read {missing}: No such file or directory"
    assert [line for line in before if "connecting to" not in line] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wrong_variable_is_one_line_that_names_it(start: Start, tmp_path: Path, package: str):
    process = start(package, MUSTER_GRACE_SECONDS="soon")

    assert process.wait(LIMIT_SECONDS) == 2
    assert _log(tmp_path, package) == "muster: MUSTER_GRACE_SECONDS: 'soon' is not a number of seconds\n"


@pytest.mark.parametrize("package", PACKAGES)
async def test_sigterm_ends_a_service_that_waits_for_its_broker(
    muster: Muster, start: Start, tmp_path: Path, package: str
) -> None:
    process = start(package, MUSTER_NATS_URL=NOWHERE, MUSTER_TEAM_FILE=str(muster.folder / "team.yaml"))
    await muster.until(lambda: f"connecting to {NOWHERE}" in _log(tmp_path, package), "it tries to connect")

    process.send_signal(signal.SIGTERM)

    assert await asyncio.to_thread(process.wait, LIMIT_SECONDS) == 0


def test_a_role_that_the_team_has_not_is_refused_before_anything_starts(start: Start, tmp_path: Path):
    process = start("muster_worker", "--role", "nobody")  # of the sample team, since none is named

    assert process.wait(LIMIT_SECONDS) == 2
    assert "no role 'nobody' in team 'default'" in _log(tmp_path, "muster_worker")


def _log(folder: Path, package: str) -> str:
    return (folder / f"{package}.log").read_text()


def _get(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as reply:
        return reply.status, reply.read()


def _post(url: str, body: object) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as reply:
        return str(json.load(reply)["id"])


async def test_a_signal_is_heard_while_a_service_waits_for_its_streams(muster: Muster) -> None:
    await muster.bus.nc.jetstream(timeout=5).delete_consumer("REQUESTS", "s_default")
    muster.spawn("supervisor", "s1")
    await muster.until(lambda: "not ready: there is no consumer" in muster.service_log("s1"), "it waits")

    muster.signal("s1", signal.SIGTERM)

    assert await muster.ended("s1") == 0
