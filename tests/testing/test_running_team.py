"""muster_testing as a user's tests use it: a team runs, is killed and asked, and answers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import AnswerStatus
from muster_testing import Collector, RunningTeam, roles, running_messages_server, running_team
from muster_testing.fixtures import StartTeam
from muster_testing.messages_server import message, text

SCRIPTED = """\
team: small
supervisor: {model: offline}
roles:
  - {name: scripted, run: "muster_testing.roles:scripted"}
"""
CLAUDE = """\
team: small
supervisor: {model: offline}
roles:
  - {name: poet, persona: You write one line., model: claude-sonnet-5-5}
"""


def written(folder: Path, team: str) -> Path:
    path = folder / "team.yaml"
    path.write_text(team)
    return path


@pytest.fixture
def team_file(tmp_path: Path) -> Path:
    return written(tmp_path, SCRIPTED)


def plan(tag: str = "scripted", **orders: Any) -> dict[str, Any]:
    return {"tasks": [{"id": "a", "tag": tag, "description": json.dumps(orders)}]}


async def test_a_running_team_answers(start_team: StartTeam, team_file: Path):
    team = await start_team(team_file)

    answer = await team.ask(plan=plan(output="hello"))

    assert (answer.status, answer.text) == (AnswerStatus.DONE, "hello")


async def test_a_killed_worker_s_task_is_done_by_the_other(team_file: Path, tmp_path: Path):
    async with running_team(team_file, tmp_path, workers=0, lease_seconds=1.0) as team:
        await team.start("worker", "first")
        request = await team.client.submit(plan=plan(until="go"))
        await team.until(lambda: roles.executions(tmp_path, request)["a"] == 1, "the first worker starts the task")

        team.kill("first")
        await team.start("worker", "second")
        roles.release(tmp_path, "go")

        assert (await team.answer(request)).status is AnswerStatus.DONE
        assert [result.worker for result in await team.results(request)] == ["second"]


async def test_a_service_that_cannot_start_fails_the_test_at_once_with_its_log(start_team: StartTeam, team_file: Path):
    team = await start_team(team_file)

    with pytest.raises(AssertionError, match=r"w2 ended: (.|\n)*'nobody'"):
        await team.start("worker", "w2", "--role", "nobody")


async def test_a_stopped_service_ends_with_0_and_a_started_one_is_waited_for_again(
    start_team: StartTeam, team_file: Path
):
    team = await start_team(team_file)

    assert await team.stop("worker-1") == 0
    await team.start("worker", "worker-1")

    assert team.service_log("worker-1").count("ready: tags scripted") == 2


async def test_a_crash_at_a_step_ends_the_service_there(start_team: StartTeam, team_file: Path):
    team = await start_team(team_file)
    await team.stop("supervisor-1")
    await team.start("supervisor", "crashing", die_at="before:plan")
    request = await team.client.submit(plan=plan())

    assert await team.ended("crashing") == 137

    assert (await team.state(request)).plan is None


async def test_services_do_not_inherit_a_key_that_a_test_could_spend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-somebodys")
    team_file = written(tmp_path, SCRIPTED.replace("model: offline", "model: auto"))

    async with running_team(team_file, tmp_path, workers=0) as team:
        assert "no ANTHROPIC_API_KEY" in team.service_log("supervisor-1")


async def test_a_role_with_a_model_gets_its_replies_from_a_messages_server(tmp_path: Path):
    team_file = written(tmp_path, CLAUDE)
    async with (
        running_messages_server(message(text("Roses are red."))) as server,
        running_team(team_file, tmp_path, workers=0) as team,
    ):
        await team.start("worker", "w1", env=server.environment)
        answer = await team.ask(plan={"tasks": [{"id": "a", "tag": "poet", "description": "a line about roses"}]})

    assert answer.text == "Roses are red."
    assert "a line about roses" in json.dumps(server.requests)


@pytest.mark.sweep
async def test_a_messages_server_whose_script_is_over_fails_the_task(tmp_path: Path):
    team_file = written(tmp_path, CLAUDE)
    async with running_messages_server() as server, running_team(team_file, tmp_path, workers=0) as team:
        await team.start("worker", "w1", env=server.environment)
        answer = await team.ask(plan={"tasks": [{"id": "a", "tag": "poet", "description": "a line"}]})

    assert answer.status is AnswerStatus.FAILED
    assert "has no more replies" in (answer.tasks[0].reason or "")


async def test_a_collector_gets_the_spans_of_the_services_that_know_its_address(
    team_file: Path, tmp_path: Path, collector: Collector
):
    async with running_team(team_file, tmp_path, workers=0) as team:
        await team.start("worker", "w1", env=collector.environment)
        await team.ask(plan=plan())
        await team.until(lambda: bool(collector.spans), "a span is exported")

    assert {span.service for span in collector.spans} == {"muster-worker"}


async def test_two_teams_of_one_test_do_not_meet(start_team: StartTeam, team_file: Path):
    teams: list[RunningTeam] = list(await asyncio.gather(start_team(team_file), start_team(team_file)))

    answers = [await team.ask(plan=plan(output=number)) for number, team in enumerate(teams)]

    assert [answer.output for answer in answers] == [0, 1]
