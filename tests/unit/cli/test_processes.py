"""Child processes are started and killed by name, and end with their parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muster_cli.local.processes import Processes
from muster_protocol.errors import Misconfigured

# A broker that never answers keeps a service waiting for longer than any of these tests.
NOWHERE = "nats://127.0.0.1:9"
PARENT = """
import pathlib, sys, time
from muster_cli.local.processes import Processes
processes = Processes(pathlib.Path(sys.argv[1]), "nats://127.0.0.1:9")
print(processes.start("child", "coordinator"), flush=True)
time.sleep(60)
"""


def test_a_child_is_killed_and_started_again(tmp_path: Path):
    processes = Processes(tmp_path, NOWHERE)
    try:
        first = processes.start("one", "coordinator")
        assert processes.is_running("one")
        with pytest.raises(ValueError, match="one is already running"):
            processes.start("one", "coordinator")
        processes.kill("one")
        assert not processes.is_running("one")
        assert processes.start("one", "coordinator") != first
    finally:
        processes.stop_all()
    assert not processes.is_running("one")


def test_a_paused_child_can_be_stopped(tmp_path: Path):
    processes = Processes(tmp_path, NOWHERE)
    os.kill(processes.start("one", "coordinator"), signal.SIGSTOP)

    began = time.monotonic()
    processes.stop_all(seconds=20)

    assert time.monotonic() - began < 15
    assert not processes.is_running("one")


async def test_a_child_that_ends_at_its_start_shows_its_log(tmp_path: Path):
    processes = Processes(tmp_path, NOWHERE)
    processes.start("one", "worker", "--team-file", "missing.yaml")

    with pytest.raises(Misconfigured, match=r"one ended at its start:\n.*there is no team file missing.yaml"):
        await processes.ready("one")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of a killed process")
def test_children_die_with_a_killed_parent(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", PARENT, tmp_path], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    end = time.monotonic() + 10
    while _is_alive(child):
        assert time.monotonic() < end, "the child outlives its parent"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
