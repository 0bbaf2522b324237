"""`muster fake-model` as a user meets it: started in one terminal, asked by a team in another."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from muster_bus.broker.embedded import die_with_parent, free_port
from muster_protocol.headers import KIND
from muster_protocol.messages import Progress
from muster_testing import RunningTeam, until
from muster_testing.services import environment

TEAM = """\
team: default
supervisor: {model: local/leader}
providers:
  local: {kind: openai, base_url: "http://127.0.0.1:PORT/v1"}
  second: {kind: anthropic, base_url: "http://127.0.0.1:PORT", api_key_env: SECOND_KEY}
roles:
  - {name: writer, description: Writes, model: [claude-sonnet-5-5, second/claude-haiku-5-5], stream: true, effort: low}
"""
ENV = {"SECOND_KEY": "sk-of-the-second"}


@contextmanager
def running(folder: Path, words: Sequence[str]) -> Generator[Path]:
    """A command in a process of its own, until it is told to stop; gives what it prints."""
    printed = folder / "fake-model.log"
    with printed.open("wb") as output:
        process = subprocess.Popen(
            words, stdout=output, stderr=output, env=environment(folder, ""), preexec_fn=die_with_parent()
        )
    try:
        yield printed
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


@asynccontextmanager
async def fake_model(folder: Path, port: int, *options: str) -> AsyncGenerator[Path]:
    """The command when it is up; gives what it prints."""
    with running(
        folder, [sys.executable, "-u", "-m", "muster_cli", "fake-model", "--port", str(port), *options]
    ) as log:
        await until(lambda: "Ctrl-C stops it" in log.read_text(), "the fake model is up")
        yield log


@pytest.fixture
def port() -> int:
    return free_port()


@asynccontextmanager
async def asking(folder: Path, port: int) -> AsyncGenerator[RunningTeam]:
    (folder / "team.yaml").write_text(TEAM.replace("PORT", str(port)))
    async with RunningTeam.provisioned(folder / "team.yaml", folder) as team:
        await team.start("supervisor", "s1", env=ENV)
        await team.start("worker", "w1", env=ENV)
        yield team


async def test_a_team_plans_and_works_with_the_fake_model_and_says_which_model_it_asked(tmp_path: Path, port: int):
    async with fake_model(tmp_path, port) as printed, asking(tmp_path, port) as team:
        answer = await team.ask("What is a muster?")
        (result,) = await team.results(answer.request_id)
        events = await team.bus.read(f"events.{answer.request_id}", from_leader=True)

    assert (answer.status, answer.model) == ("done", "leader")
    assert "What is a muster?" in str(answer.text)
    assert result.model == "second/claude-haiku-5-5", "the key of the first is missing"
    parts = [Progress.read(event.data) for event in events if (event.headers or {}).get(KIND) == "progress"]
    assert [part.is_part for part in parts] == [True]
    assert "200  /v1/chat/completions  leader  ok" in printed.read_text()
    assert "200  /v1/messages  claude-haiku-5-5  ok" in printed.read_text()


async def test_faults_are_met_as_those_of_a_real_provider_and_a_script_is_followed(tmp_path: Path, port: int):
    (tmp_path / "replies.yaml").write_text("- {when: What is a muster, json: [x]}\n- a fine answer\n")
    options = ("--fault", "529", "--every", "2", "--script", str(tmp_path / "replies.yaml"))
    plan: dict[str, Any] = {"tasks": [{"id": "a", "description": "write", "tag": "writer", "dependencies": []}]}
    async with fake_model(tmp_path, port, *options) as printed, asking(tmp_path, port) as team:
        first = await team.ask(plan=plan)
        second = await team.ask(plan=plan)
        results = [await team.results(answer.request_id) for answer in (first, second)]

    assert [answer.status for answer in (first, second)] == ["done", "done"]
    assert [found[-1].output for found in results] == ["a fine answer"] * 2
    assert "529" in printed.read_text()


def test_a_port_that_is_taken_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = [sys.executable, "-m", "muster_cli", "fake-model", "--port", str(taken.getsockname()[1])]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=30, env=dict(os.environ), check=False)

    assert ended.returncode == 2
    assert "name another one" in ended.stderr
