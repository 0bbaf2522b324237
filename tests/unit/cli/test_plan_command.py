"""`muster plan` where no broker runs: offline, with a model, and over a plan that cannot work."""

import asyncio
import json
from pathlib import Path

import pytest

from muster_testing.messages_server import message, running_messages_server, text
from tests.flow.command_line import Here

CIRCLE = {
    "tasks": [
        {"id": "a", "tag": "thinker", "description": "process the data", "dependencies": ["b"]},
        {"id": "b", "tag": "thinkr", "description": "read letter 7", "dependencies": ["a"]},
    ]
}


@pytest.fixture
def alone(tmp_path: Path) -> Here:
    here = Here(tmp_path)
    (tmp_path / "team.yaml").write_text("team: t\nroles: [{name: thinker, tools: [calculate]}]\n")
    return here


def test_offline_a_plan_is_shown_as_a_tree_and_nobody_is_asked_for_a_broker(alone: Here):
    ran = alone.run("plan", "Add 1 and 2")

    assert ran.returncode == 0, ran.stderr
    assert "└ thinker  [thinker]  Add 1 and 2" in ran.stdout
    assert "nothing was measured of its roles yet" in ran.stdout
    assert ran.stdout.endswith("nothing was run\n")
    assert "broker" not in ran.stderr


def test_a_plan_that_cannot_work_is_shown_with_all_that_is_wrong_and_ends_with_1(alone: Here):
    ran = alone.run("plan", "--plan", "-", text=json.dumps(CIRCLE))

    assert ran.returncode == 1
    assert "tasks wait for each other: a → b → a" in ran.stdout
    assert "nobody has the tag 'thinkr'; did you mean 'thinker'?" in ran.stdout
    assert "vague descriptions, say what exactly: a" in ran.stdout


async def test_with_a_model_the_plan_is_the_models_and_its_cost_is_said(alone: Here):
    plan = {"goal": "sums", "tasks": [{"id": "add", "tag": "thinker", "description": "Add 1 and 2"}]}
    async with running_messages_server(message(text(json.dumps(plan)))) as server:
        ran = await asyncio.to_thread(alone.run, "plan", "Add 1 and 2", "--json", **server.environment)

    document = json.loads(ran.stdout)
    assert document["planner"] == "claude-sonnet-5-5"
    assert [task["id"] for task in document["plan"]["tasks"]] == ["add"]
    assert document["usage"]["model_calls"] == 1


async def test_a_model_that_makes_no_valid_plan_is_a_finding(alone: Here):
    async with running_messages_server(message(text(json.dumps(CIRCLE))), message(text(json.dumps(CIRCLE)))) as server:
        ran = await asyncio.to_thread(alone.run, "plan", "Add 1 and 2", "--json", **server.environment)

    document = json.loads(ran.stdout)
    assert (ran.returncode, document["plan"]) == (1, None)
    assert "made no valid plan" in document["findings"][0]["text"]
