"""A priority is said on the command line, kept in the log, and shown where it is not the usual one."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.flow.command_line import Here
from tests.harness import Muster, running


@pytest.fixture
async def lanes(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path, roles="priorities: {}\n") as muster:
        yield muster


async def test_a_priority_that_is_not_normal_is_shown(lanes: Muster, tmp_path: Path):
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=lanes.broker.url)
    (here.folder / "plan.json").write_text(
        json.dumps({"goal": "be quick", "tasks": [{"id": "a", "description": "{}", "tag": "scripted"}]})
    )
    submit = ("submit", "--plan", "plan.json", "--detach", "--priority", "high")
    asked = (await asyncio.to_thread(here.document, *submit))["request_id"]

    (listed,) = (await asyncio.to_thread(here.document, "status"))["requests"]
    await lanes.start("supervisor", "s1")
    await lanes.until_log(asked, lambda state: state.in_flight == 1)
    shown = await asyncio.to_thread(here.run, "status", asked)
    overview = await asyncio.to_thread(here.run, "status")

    assert listed["priority"] == "high"
    assert "high priority: be quick" in shown.stdout
    assert "high priority: be quick" in overview.stdout
    assert (await asyncio.to_thread(here.document, "status", asked))["priority"] == "high"


async def test_a_worker_that_is_not_provisioned_for_lanes_says_so(tmp_path: Path):
    async with running(tmp_path) as muster:
        team = tmp_path / "team.yaml"
        team.write_text(team.read_text() + "priorities: {}\n")
        muster.spawn("worker", "w1")

        await muster.until_logged("w1", "there is no consumer high_scripted on TASKS; run `muster provision`")
