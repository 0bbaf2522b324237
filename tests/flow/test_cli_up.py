"""The command line starts and ends what runs: `muster up`, its broker, `muster reset`, and services of their own."""

import asyncio
import json
import os
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from muster_bus.broker.embedded import Server, free_port
from muster_cli.local.processes import Processes
from muster_testing import until_asked
from tests.flow.command_line import Here, is_alive, plan, read_until, wait_for_words


@pytest.fixture
def alone(tmp_path: Path) -> Here:
    """A folder in which nothing runs."""
    return Here(tmp_path)


def test_a_broker_that_cannot_be_started_under_up_is_tried_again(alone: Here):
    config = alone.folder / ".muster" / "nats" / "nats.conf"
    with alone.up():
        broker = alone.broker_pid()
        config.unlink()
        config.mkdir()
        os.kill(broker, signal.SIGKILL)
        wait_for_words(alone.folder / "up.txt", "nats-server cannot be started, next try in 2 s")
        config.rmdir()
        wait_for_words(alone.folder / "up.txt", "the broker is back")

        assert alone.run("submit", "--plan", "-", text=plan(("one", "good"))).returncode == 0
        assert alone.broker_pid() != broker


def test_up_ends_cleanly_and_keeps_what_was_asked(alone: Here):
    with alone.up() as (process, printed):
        assert "muster submit --plan -" in printed  # its roles are functions
        assert "pub requests.small" in printed
        request_id = json.loads(alone.run("submit", "--plan", "-", "--json", text=plan(("one", "good"))).stdout)[
            "request_id"
        ]
        broker = alone.broker_pid()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert not is_alive(broker)
        assert not (alone.folder / ".muster" / "address.json").exists()

    with alone.up():
        assert alone.document("status", request_id)["status"] == "done"
    assert alone.run("reset").returncode == 2
    assert alone.run("reset", "--yes").stdout == "removed .muster\n"
    assert not (alone.folder / ".muster").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.1 is the only address of the loopback")
def test_up_says_where_the_coordinator_listens_and_takes_a_port_that_is_free_there(alone: Here):
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        env = {"MUSTER_HTTP_HOST": "127.0.0.2", "MUSTER_HTTP_PORT": str(port)}
        with alone.up("--port", str(free_port()), **env) as (_, printed):
            address = json.loads((alone.folder / ".muster" / "address.json").read_text())["http_url"]
            with urllib.request.urlopen(f"{address}/readyz", timeout=60) as reply:
                assert reply.status == 200

    assert address.startswith("http://127.0.0.2:")
    assert not address.endswith(f":{port}")
    assert f"HTTP   {address}   (port {port} is not free)" in printed


def test_a_killed_up_leaves_nothing_that_the_next_one_trips_over(alone: Here):
    with alone.start("up") as killed:
        read_until(killed, "Ctrl-C stops it")
        broker = alone.broker_pid()
        killed.kill()

    with alone.up():
        assert alone.broker_pid() != broker
        assert not is_alive(broker)
        assert alone.run("submit", "--plan", "-", text=plan(("one", "good"))).returncode == 0


async def test_reset_forgets_the_streams_of_a_broker_that_is_named(alone: Here):
    server = Server(alone.folder / "nats")
    await server.start()
    assert alone.run("provision", MUSTER_NATS_URL=server.url).returncode == 0

    forgotten = alone.run("reset", "--yes", MUSTER_NATS_URL=server.url)
    after = alone.run("status", MUSTER_NATS_URL=server.url)
    await server.stop()

    assert forgotten.stdout == f"removed every stream of Muster at {server.url}\n"
    assert (after.returncode, "nothing of Muster is at" in after.stderr) == (1, True)


async def test_reset_at_a_broker_that_cannot_says_why_in_one_line(alone: Here):
    plain = Server(alone.folder / "nats", extra="jetstream: disabled\n")
    await plain.start()

    ran = alone.run("reset", "--yes", MUSTER_NATS_URL=plain.url)
    await plain.stop()

    assert (ran.returncode, ran.stderr.count("\n")) == (5, 1)
    assert ran.stderr.startswith("muster: the broker did not remove REQUESTS: ")


async def test_services_of_their_own_and_a_request_that_is_stuck(alone: Here):
    server = Server(alone.folder / "nats")
    await server.start()
    processes = Processes(alone.folder / "logs", server.url)
    team = ("--team-file", str(alone.folder / "team.yaml"))
    try:
        for _ in range(2):
            provisioned = alone.run("provision", MUSTER_NATS_URL=server.url)
            assert "team small is provisioned" in provisioned.stdout, provisioned.stderr
        waiting = _detached(alone, server.url, ("one", "good"))
        assert _cause(alone, server.url, waiting) == "queued: no supervisor has taken it"

        processes.start("supervisor", "supervisor", *team)
        processes.start("worker", "worker", "--role", "good", "--slots", "2", *team)
        await processes.ready("supervisor", "worker")
        stuck = _detached(alone, server.url, ("one", "good"), ("two", "slow", "one"))
        unserved = "running: two waits for tag 'slow', which no live worker serves"
        await until_asked(lambda: _has_cause(alone, server.url, stuck, unserved), unserved, every=0.0)
    finally:
        codes = processes.stop_all(20)
        await server.stop()
    assert codes == {"supervisor": 0, "worker": 0}


def _detached(here: Here, url: str, *tasks: tuple[str, str] | tuple[str, str, str]) -> str:
    ran = here.run("submit", "--plan", "-", "--team", "small", "--detach", text=plan(*tasks), MUSTER_NATS_URL=url)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def _cause(here: Here, url: str, request_id: str) -> str:
    ran = here.run("status", request_id, "--json", MUSTER_NATS_URL=url)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["cause"]


async def _has_cause(here: Here, url: str, request_id: str, cause: str) -> bool:
    return await asyncio.to_thread(_cause, here, url, request_id) == cause
