"""Which process runs in a folder is known from a lock that ends with that process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muster_bus.process.settings import Settings
from muster_cli.local.folder import (
    Address,
    Lock,
    forget_address,
    http_url,
    is_running,
    nats_url,
    read_address,
    team_name,
    write_address,
)
from muster_protocol.errors import Misconfigured

ADDRESS = Address("nats://127.0.0.1:4333", "http://127.0.0.1:8333", "small", 1)
HOLD = """
import pathlib, sys
from muster_cli.local.folder import Lock
with Lock(pathlib.Path(sys.argv[1]), "it"):
    print("held", flush=True)
    input()
"""


def test_a_second_process_is_refused_and_the_first_is_named(tmp_path: Path):
    with Lock(tmp_path, "muster up"):
        assert is_running(tmp_path)
        with pytest.raises(Misconfigured, match=rf"muster up is already running in .* \(process {os.getpid()}\)"):
            Lock(tmp_path, "muster up").__enter__()

    assert not is_running(tmp_path)


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_running(tmp_path)
        holder.send_signal(signal.SIGKILL)

    assert not is_running(tmp_path)
    with Lock(tmp_path, "it"):
        assert is_running(tmp_path)


def test_an_address_is_valid_while_its_process_runs(tmp_path: Path):
    with Lock(tmp_path, "it"):
        write_address(tmp_path, ADDRESS)
        assert read_address(tmp_path) == ADDRESS

    assert read_address(tmp_path) is None


def test_a_broken_or_missing_address_is_none(tmp_path: Path):
    with Lock(tmp_path, "it"):
        assert read_address(tmp_path) is None
        (tmp_path / "address.json").write_text('{"nats_url": 1')
        assert read_address(tmp_path) is None
        forget_address(tmp_path)
        forget_address(tmp_path)
        assert not (tmp_path / "address.json").exists()


def test_a_broker_that_the_environment_names_wins_over_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    unset, named = Settings(), Settings(nats_url="nats://elsewhere:4222")
    assert (nats_url(unset), http_url(unset), team_name(unset)) == ("nats://127.0.0.1:4222", None, "default")
    with Lock(Path(".muster"), "it"):
        write_address(Path(".muster"), ADDRESS)

        assert (nats_url(unset), http_url(unset), team_name(unset)) == (ADDRESS.nats_url, ADDRESS.http_url, "small")
        assert (nats_url(named), http_url(named), team_name(named)) == ("nats://elsewhere:4222", None, "default")
