"""What fails is seen: in the worker's log, in `muster status ID` and in `muster logs ID`. Keys are seen nowhere."""

import asyncio
import json
import subprocess
import urllib.request
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus
from muster_testing import RunningTeam
from muster_testing.messages_server import refusal, running_messages_server
from muster_testing.otlp import Collector
from muster_testing.waiting import until_asked
from tests.flow.command_line import Here
from tests.guards import guards

KEY = "sk-ant-planted-0123456789"
PASSWORD = "pass-planted-42"
FORGED = "no route\\n12:00:00 worker-w1  ✓ result forged"
TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: caller, run: "failing:caller"}
  - {name: teller, run: "failing:teller"}
  - {name: seeker, description: Looks things up, model: offline, tools: ["failing:look_up"]}
  - {name: thinker, description: Thinks, model: claude-sonnet-5-5}
"""
ROLES = f"""\
import logging, os, socket

KEY = os.environ.get("ANTHROPIC_API_KEY", "no key")


async def caller(task, ctx):
    raise ConnectionError(f"{FORGED} {{KEY}}")


async def teller(task, ctx):
    logging.getLogger("roles").warning("the key is %s", KEY)
    ctx.progress(f"with {{KEY}}")
    return {{"key": KEY, "x" + KEY: [KEY], "password": os.environ["MUSTER_NATS_URL"]}}


def look_up(text: str) -> str:
    \"\"\"Look something up.\"\"\"
    raise ConnectionError(f"no route to the library with {{KEY}}")
"""


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[RunningTeam]:
    (tmp_path / "team.yaml").write_text(TEAM)
    (tmp_path / "failing.py").write_text(ROLES)
    async with RunningTeam.provisioned(tmp_path / "team.yaml", tmp_path) as team:
        yield team


def _plan(*tags: str) -> dict[str, object]:
    return {"tasks": [{"id": tag, "description": f"task {tag}", "tag": tag, "max_attempts": 1} for tag in tags]}


async def _command(team: RunningTeam, *words: str) -> str:
    folder = team.folder / "here"
    folder.mkdir(exist_ok=True)
    ran = await asyncio.to_thread(Here(folder, MUSTER_NATS_URL=team.url).run, *words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def test_a_failure_is_in_the_log_in_the_status_and_in_muster_logs_with_its_place(team: RunningTeam):
    await team.start("supervisor", "s1")
    await team.start("worker", "w1", "--role", "caller", "--role", "seeker", env={"MUSTER_LOG": "json"})

    request_id = await team.client.submit(plan=_plan("caller", "seeker"))
    answer = await team.answer(request_id)

    assert answer.status is AnswerStatus.FAILED  # a tool that raises under the offline model is no empty success
    documents = [json.loads(line) for line in team.service_log("w1").splitlines()]
    failed = [line for line in documents if line.get("status") == "failed" and line.get("task") == "caller"]
    wanted = {"request": request_id, "attempt": 1, "worker": "worker-w1", "error_class": "network"}
    assert failed[0].items() >= wanted.items()
    assert "✗ result" in failed[0]["message"]
    assert "ConnectionError: no route" in failed[0]["message"]
    assert "(failing.py:7)" in failed[0]["message"]
    status = await _command(team, "status", request_id)
    assert "✗ caller attempt 1 failed by worker-w1: network: ConnectionError: no route" in status
    assert "✗ seeker attempt 1 tool look_up failed: network: ConnectionError: no route to the library" in status
    assert "with no key (failing.py:18)" in status
    lines = (await _command(team, "logs", request_id, "--follow")).splitlines()
    assert "→ request taken by supervisor-s1" in lines[0]
    assert any("✗ result  caller  attempt 1  failed: network: ConnectionError: no route" in line for line in lines)
    assert any("✗ tool    seeker  attempt 1  look_up failed" in line and "(failing.py:18)" in line for line in lines)
    assert "✗ answer  failed" in lines[-1]
    assert not any(line.startswith("12:00:00") for line in lines)
    document = [json.loads(line) for line in (await _command(team, "logs", request_id, "--json")).splitlines()]
    (result,) = (one for one in document if one["kind"] == "result" and one["task"] == "caller")
    about = {"request": request_id, "attempt": 1, "worker": "worker-w1", "status": "failed", "error_class": "network"}
    assert result.items() >= about.items()


async def _everything(team: RunningTeam, request_id: str, http: str) -> str:
    """The streams, the logs of the services, and what HTTP shows."""
    said: list[str] = []
    for subject in (subjects.results(request_id), subjects.events(request_id), subjects.control(request_id)):
        said += [raw.data.decode() for raw in await team.bus.read(subject, from_leader=True)]
    said += [raw.data.decode() for raw in await team.errors()]
    said += [team.service_log(name) for name in ("s1", "w1", "c1")]
    for path in ("errors", "requests", *(f"requests/{request_id}{part}" for part in ("", "/answer", "/events"))):
        said.append(await asyncio.to_thread(_get, f"{http}/v1/{path}"))
    return "\n".join(said)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read().decode()


@guards("libs/bus/muster_bus/connection.py", "KNOWN.is_in(body)", rule="I10", replace="False", seconds=40)
async def test_a_planted_key_is_on_no_edge_whoever_says_it(team: RunningTeam):
    canned = refusal(400, "invalid_request_error", f"bad {KEY}")
    async with Collector() as collector, running_messages_server(canned, key=KEY) as server:
        url = team.url.replace("nats://", f"nats://somebody:{PASSWORD}@")
        env = {**server.environment, **collector.environment, "MUSTER_NATS_URL": url, "MUSTER_TRACE_CONTENT": "1"}
        await team.start("supervisor", "s1", env=env)
        await team.start("worker", "w1", env=env)
        await team.start("coordinator", "c1", env=env)
        await team.bus.publisher.store("tasks.caller", f"{'x' * 190}{KEY}".encode(), {}, give_up_after=10)

        request_id = await team.client.submit(plan=_plan("caller", "teller", "seeker", "thinker"))
        answer = await team.answer(request_id)
        await until_asked(lambda: _has_errors(team), "the garbage is reported")

        said = await _everything(team, request_id, team.http_url("c1"))
        for name in ("s1", "w1", "c1"):
            await team.stop(name)
        said += repr(collector.spans) + "".join(team.service_log(name) for name in ("s1", "w1", "c1"))
    provisioned = await asyncio.to_thread(_provision, team, url)
    said += provisioned.stdout + provisioned.stderr
    assert answer.status is AnswerStatus.PARTIAL
    assert "[redacted ANTHROPIC_API_KEY]" in said
    assert len(collector.spans) > 4
    assert provisioned.returncode == 0, provisioned.stderr
    assert [secret for secret in (KEY, KEY[:12], PASSWORD) if secret in said] == []
    logs = "".join(team.service_log(name) for name in ("s1", "w1", "c1"))
    assert "somebody" not in logs + provisioned.stdout  # only the role's own output may name a user


LOG = "libs/protocol/muster_protocol/messages/log.py"
PEOPLE = "libs/protocol/muster_protocol/messages/people.py"
TASK = "libs/protocol/muster_protocol/messages/task.py"


@guards(LOG, '        "plan.final_instruction",', rule="I10", replace="", seconds=40)
@guards(PEOPLE, '"reason",\n        "value",', replace='"value",', rule="I10", seconds=40)
@guards(TASK, '("description", "inputs", "expected_output", "context", "notes")', rule="I10", replace="()", seconds=40)
async def test_a_key_in_what_was_asked_is_in_no_entry_no_task_and_no_event(team: RunningTeam):
    await team.start("supervisor", "s1", env={"ANTHROPIC_API_KEY": KEY})
    expected = {"type": "object", "description": f"expected {KEY}"}
    task = {"id": "t", "description": f"do {KEY}", "tag": "teller", "expected_output": expected}
    plan = {"goal": f"goal {KEY}", "final_instruction": f"finally {KEY}", "tasks": [task]}

    asked = [await team.client.submit(f"text {KEY}"), await team.client.submit(plan=plan, id="planned")]
    again = await team.client.submit(plan=plan, id="planned")  # what is compared is what was asked
    await until_asked(lambda: _has_tasks(team, "teller"), "the task is dispatched")
    said = [raw.data.decode() for raw in await team.bus.read(subjects.tasks("teller"), from_leader=True)]
    for request_id in asked:
        await team.client.cancel(request_id, f"no more of {KEY}")
        await team.answer(request_id)
        for subject in (subjects.results(request_id), subjects.events(request_id)):
            said += [raw.data.decode() for raw in await team.bus.read(subject, from_leader=True)]

    assert again == "planned"
    for words in ("text", "do", "expected", "goal", "finally", "no more of"):
        assert f"{words} [redacted ANTHROPIC_API_KEY]" in "\n".join(said)
    assert [text for text in said if KEY in text] == []


async def _has_tasks(team: RunningTeam, tag: str) -> bool:
    return bool(await team.bus.read(subjects.tasks(tag), from_leader=True))


async def _has_errors(team: RunningTeam) -> bool:
    return bool(await team.errors())


def _provision(team: RunningTeam, url: str) -> subprocess.CompletedProcess[str]:
    folder = team.folder / "provisioning"
    folder.mkdir()
    return Here(folder, MUSTER_NATS_URL=url).run("provision", "--json")  # of another team, at the same broker
