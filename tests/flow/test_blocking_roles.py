"""A function that blocks its event loop stops its own worker and nothing else, and is named."""

import json
import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from tests.flow.command_line import Here, is_alive, plan, read_until, wait_for_words
from tests.guards import guards

BLOCKING_TEAM = """\
team: small
supervisor: {model: offline}
roles:
  - {name: good, run: "roles:good"}
  - {name: busy, run: "roles:busy"}
"""
BLOCKING_ROLES = """\
import time

async def good(task, ctx):
    return "kept"

async def busy(task, ctx):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass
"""


@pytest.fixture
def here(tmp_path: Path) -> Here:
    here = Here(tmp_path, MUSTER_GRACE_SECONDS="4")
    (tmp_path / "team.yaml").write_text(BLOCKING_TEAM)
    (tmp_path / "roles.py").write_text(BLOCKING_ROLES)
    return here


@guards("services/worker/muster_worker/watchdog.py", "self._report(still)", rule="I4", replace="pass", seconds=60)
def test_a_role_that_blocks_its_worker_is_named_while_http_answers_and_the_deadline_holds(here: Here):
    with here.up(MUSTER_LOG="json") as (_, printed):
        http = re.search(r"HTTP\s+(\S+)", printed)
        assert http is not None
        began = time.monotonic()
        ran = here.run("submit", "--plan", "-", "--deadline", "8", text=plan(("one", "good"), ("two", "busy", "one")))
        seconds = time.monotonic() - began
        with urllib.request.urlopen(f"{http[1]}/readyz", timeout=10) as reply:
            assert reply.status == 200
        wait_for_words(here.folder / "up.txt", "has blocked this worker")
        lines = [json.loads(line) for line in here.printed("up").splitlines()]

    assert (ran.returncode, "kept" in ran.stdout) == (3, True), ran.stderr
    assert seconds < 30  # the role blocks for 60
    said = next(line for line in lines if "has blocked this worker" in line.get("message", ""))
    assert re.match(r"… worker  role 'busy' \(\S+\.two\.1\) has blocked this worker for \d+ s", said["message"])
    assert "(roles.py:" in said["message"]
    assert (said["task"], said["attempt"], said["worker"][:7]) == ("two", 1, "worker-")
    assert said["message"].count(said["request"]) == 1


def test_a_worker_of_up_that_dies_is_started_again_and_the_work_goes_on(here: Here):
    with here.up():
        worker = _worker_pid(here)
        os.kill(worker, signal.SIGKILL)
        wait_for_words(here.folder / "up.txt", "is gone (killed by SIGKILL); starting another in 0.5 s")

        assert here.run("submit", "--plan", "-", text=plan(("one", "good"))).returncode == 0
        assert _worker_pid(here) != worker


@pytest.mark.sweep
def test_one_signal_stops_a_blocked_worker_within_the_grace_time(here: Here):
    with here.up() as (process, _):
        worker = _worker_pid(here)
        assert here.run("submit", "--plan", "-", "--detach", text=plan(("one", "busy"))).returncode == 0
        wait_for_words(here.folder / "up.txt", "has blocked this worker")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0

    assert not is_alive(worker)
    assert "did not stop in time and was killed" in here.printed("up")


@guards("cli/muster_cli/local/worker_process.py", "preexec_fn=die_with_parent(),", rule="I12", replace="", seconds=60)
def test_a_killed_up_leaves_no_worker_behind(here: Here):
    with here.start("up") as killed:
        read_until(killed, "Ctrl-C stops it")
        worker = _worker_pid(here)
        killed.kill()

    end = time.monotonic() + 30
    while is_alive(worker):
        assert time.monotonic() < end, "the worker outlives its `muster up`"


def _worker_pid(here: Here) -> int:
    """The newest worker that runs in this folder."""
    team = str(here.folder / "team.yaml").encode()
    found = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if team in (words := _words(path)) and b"worker" in words
    ]
    return max(found, key=lambda pid: Path(f"/proc/{pid}").stat().st_ctime)


def _words(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:  # it has ended
        return []
