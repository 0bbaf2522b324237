"""The command line against a real broker and real services."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest

from muster_bus.broker.embedded import Server, free_port
from muster_cli.local.processes import Processes
from muster_testing import until_asked
from tests.flow.command_line import Here, is_alive, plan, read_until


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    """A folder in which `muster up` runs."""
    folder = Here(tmp_path_factory.mktemp("here"))
    with folder.up():
        yield folder


@pytest.fixture
def alone(tmp_path: Path) -> Here:
    """A folder in which nothing runs."""
    return Here(tmp_path)


def test_a_plan_is_done_and_its_answer_is_on_stdout_alone(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "good"), ("two", "good", "one")))

    assert ran.returncode == 0, ran.stderr
    assert "did task two" in ran.stdout
    assert "plan    2 tasks" in ran.stderr
    assert "after one" in ran.stderr
    assert "done in" in ran.stderr
    assert "did task two" not in ran.stderr


def test_a_question_is_planned_and_answered_as_json(here: Here):
    ran = here.run("ask", "Do what you are told", "--json", "--deadline", "8")

    answer = json.loads(ran.stdout)
    assert ran.returncode in (0, 3), ran.stderr
    assert answer["status"] in ("done", "partial")
    assert answer["tasks"]


def test_a_map_is_unfolded(here: Here):
    over = {"template": {"description": "greet {item}", "tag": "good"}, "items": ["Ada", "Bob"]}
    ran = here.run("submit", "--map", "-", "--json", text=json.dumps(over))

    assert ran.returncode == 0, ran.stderr
    assert [task["id"] for task in json.loads(ran.stdout)["tasks"]] == ["item-1", "item-2"]


def test_a_failed_request_exits_1_and_ends_with_its_cause(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "bad"), ("two", "good", "one")))

    assert ran.returncode == 1
    assert ran.stderr.rstrip().endswith("failed: one failed: ValueError: the mill is broken")


def test_a_partial_request_exits_3(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "good"), ("two", "bad")))

    assert ran.returncode == 3
    assert "did task one" in ran.stdout


def test_a_tag_that_nobody_has_is_named(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "maths")))

    assert ran.returncode == 1
    assert "nobody has the tag 'maths'" in ran.stdout


def test_a_detached_request_is_listed_followed_cancelled_and_explained(here: Here):
    asked = _slow(here, "asked-twice")
    request_id = here.document("submit", "--request", asked, "--detach")["request_id"]
    status = here.document("status")
    assert request_id in [request["request_id"] for request in status["requests"]]
    assert set(status["workers"][0]["tags"]) == {"good", "bad", "slow"}

    with here.start("submit", "--request", asked) as follower:
        _wait_for(here.folder / "submit.txt", "plan    1 tasks")
        assert here.document("cancel", request_id, "--reason", "enough")["cancelled"] is True
        assert follower.wait(60) == 4

    status = here.document("status", request_id)
    assert status["status"] == "cancelled"
    assert re.fullmatch(r"by client/muster-\w+: enough", status["reason"])
    assert here.document("cancel", request_id)["cancelled"] is False
    assert here.run("status", request_id).stdout.rstrip().endswith(f"cancelled: {status['reason']}")


def test_an_unknown_request_is_said_to_be_unknown(here: Here):
    ran = here.run("status", "nix")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "no request 'nix' is known" in ran.stderr


def test_ctrl_c_leaves_the_request_running_and_says_so(here: Here):
    with here.start("submit", "--request", _slow(here)) as follower:
        _wait_for(here.folder / "submit.txt", "plan    1 tasks")
        follower.send_signal(signal.SIGINT)
        assert follower.wait(60) == 130

    said = (here.folder / "submit.txt").read_text()
    assert "the request goes on: `muster status" in said
    assert "Traceback" not in said
    here.run("cancel", said.rpartition("`muster cancel ")[2].partition("`")[0])


def test_what_a_role_says_while_it_works_is_shown(here: Here):
    with here.start("submit", "--request", _slow(here, "talks")) as follower:
        _wait_for(here.folder / "submit.txt", "· one  step")
        here.run("cancel", "talks")
        assert follower.wait(60) == 4


def test_a_request_comes_by_http_as_the_welcome_says(here: Here):
    address = json.loads((here.folder / ".muster" / "address.json").read_text())
    body = json.dumps({"team": "small", "plan": json.loads(plan(("one", "good")))}).encode()
    asked = urllib.request.Request(
        f"{address['http_url']}/v1/requests", body, {"content-type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(asked, timeout=60) as reply:
        request_id = json.loads(reply.read())["id"]
    with urllib.request.urlopen(f"{address['http_url']}/v1/requests/{request_id}/answer?wait=20", timeout=30) as reply:
        assert json.loads(reply.read())["status"] == "done"

    assert here.document("status", request_id)["status"] == "done"
    assert request_id in [request["id"] for request in here.document("status")["ended"]]


def test_a_second_up_and_a_reset_are_refused(here: Here):
    for words, complaint in ((["up"], "muster up is already running in"), (["reset", "--yes"], "muster up is running")):
        ran = here.run(*words)
        assert ran.returncode == 1
        assert complaint in ran.stderr


def test_a_broker_that_dies_under_up_comes_back(here: Here):
    before = here.broker_pid()
    os.kill(before, signal.SIGKILL)

    ran = here.run("submit", "--plan", "-", text=plan(("one", "good")))
    while ran.returncode == 5:  # in the moment in which it is away
        ran = here.run("submit", "--plan", "-", text=plan(("one", "good")))

    assert ran.returncode == 0, ran.stderr
    assert here.broker_pid() != before


def test_a_broker_that_cannot_be_started_under_up_is_tried_again(alone: Here):
    config = alone.folder / ".muster" / "nats" / "nats.conf"
    with alone.up():
        broker = alone.broker_pid()
        config.unlink()
        config.mkdir()
        os.kill(broker, signal.SIGKILL)
        _wait_for(alone.folder / "up.txt", "nats-server cannot be started, next try in 2 s")
        config.rmdir()
        _wait_for(alone.folder / "up.txt", "the broker is back")

        assert alone.run("submit", "--plan", "-", text=plan(("one", "good"))).returncode == 0
        assert alone.broker_pid() != broker


def test_up_ends_cleanly_and_keeps_what_was_asked(alone: Here):
    with alone.up() as (process, said):
        assert "muster ask" in said
        assert "pub requests.small" in said
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
        with alone.up("--port", str(free_port()), **env) as (_, said):
            address = json.loads((alone.folder / ".muster" / "address.json").read_text())["http_url"]
            with urllib.request.urlopen(f"{address}/readyz", timeout=60) as reply:
                assert reply.status == 200

    assert address.startswith("http://127.0.0.2:")
    assert not address.endswith(f":{port}")
    assert f"HTTP   {address}   (port {port} is not free)" in said


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
    team = ("--team", str(alone.folder / "team.yaml"))
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


def _slow(here: Here, request_id: str | None = None) -> str:
    """The name of a file with a request that takes its time."""
    fields = {"plan": json.loads(plan(("one", "slow")))} | ({"id": request_id} if request_id else {})
    path = here.folder / "slow.json"
    path.write_text(json.dumps(fields))
    return str(path)


def _wait_for(file: Path, words: str) -> None:
    with subprocess.Popen(["tail", "-n", "+1", "-f", file], stdout=subprocess.PIPE, text=True) as tail:
        read_until(tail, words)
        tail.kill()
