"""I9: what the supervisor spends on planning and composing is in the budget, whenever it dies."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import AnswerStatus, Reserved
from muster_testing.crash import KILLED
from muster_testing.messages_server import CannedReply, MessagesServer, message, running_messages_server, text
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster

TEAM = """\
team: default
supervisor: {model: claude-sonnet-5-5}
limits: {rounds: 0}
roles:
  - {name: scripted, description: Does what its orders say, run: "muster_testing.roles:scripted"}
"""
REFINING = """\
team: default
supervisor: {model: claude-sonnet-5-5}
roles:
  - {name: thinker, description: Thinks, model: claude-sonnet-5-5, retry: {refine: true}}
"""
REFINE = "services/supervisor/muster_supervisor/steps/refine.py"
ASKED = "Say one and say two"
PLAN: dict[str, Any] = {
    "goal": ASKED,
    "tasks": [
        {
            "id": name,
            "description": json.dumps({"output": name}),
            "tag": "scripted",
            "dependencies": [],
            "expected_output": "",
        }
        for name in ("one", "two")
    ],
    "aggregation": "merge",
    "final_instruction": "Together",
}
DRAFT = message(text(json.dumps(PLAN)), read=900, written=300)
COMPOSED = message(text("One and two."), read=500, written=20)


@asynccontextmanager
async def thinking_team(folder: Path, *script: CannedReply) -> AsyncGenerator[tuple[Muster, MessagesServer]]:
    (folder / "team.yaml").write_text(TEAM)
    async with (
        running_messages_server(*script) as server,
        Muster.provisioned(folder / "team.yaml", folder, lease_seconds=LEASE_SECONDS) as muster,
    ):
        await muster.start("worker", "w1")
        yield muster, server


async def purposes(muster: Muster, request: str) -> list[tuple[str, int]]:
    """What was reserved for whom, without the attempts of tasks."""
    found = [entry.body for entry in await muster.entries(request, Reserved)]
    return [(body.purpose, body.tokens or 0) for body in found if isinstance(body, Reserved) and body.purpose]


@guards("libs/protocol/muster_protocol/fold/terms.py", "    charge_all(state)", rule="I9", seconds=30)
async def test_i9_a_supervisor_that_dies_before_its_call_has_spent_what_it_reserved(tmp_path: Path) -> None:
    async with thinking_team(tmp_path, DRAFT, COMPOSED) as (muster, server):
        muster.spawn("supervisor", "s1", die_at="after:reserved", env=server.environment)
        request = await muster.client.submit(ASKED, budget={"tokens": 60_000})
        assert await muster.ended("s1") == KILLED
        assert server.requests == []

        await muster.start("supervisor", "s2", env=server.environment)
        answer = await muster.answer(request)

        assert (answer.status, answer.text, len(server.requests)) == (AnswerStatus.DONE, "One and two.", 2)
        (lost, _), (first, charged), (last, _) = [*await purposes(muster, request)][:3]
        assert (lost, first, last) == ("plan", "plan", "compose")
        assert answer.usage.tokens == charged + 900 + 300 + 500 + 20 <= 60_000


@guards(REFINE, "while_wanted(owner, ask_with_retry(model, ask))", rule="I9", replace="ask_with_retry(model, ask)")
async def test_i9_a_new_description_that_a_cancel_ends_is_paid(tmp_path: Path) -> None:
    script = [message(text("")), CannedReply(message(text("never read")).body, is_held=True)]
    (tmp_path / "team.yaml").write_text(REFINING)
    async with (
        running_messages_server(*script) as server,
        Muster.provisioned(tmp_path / "team.yaml", tmp_path, lease_seconds=LEASE_SECONDS) as muster,
    ):
        await asyncio.gather(*(muster.start(kind, kind, env=server.environment) for kind in ("worker", "supervisor")))
        plan = {"tasks": [{"id": "t", "tag": "thinker", "description": "Think of a number"}]}
        request = await muster.client.submit(plan=plan, budget={"tokens": 60_000})
        await muster.until(lambda: len(server.requests) == len(script), "the supervisor describes the task anew")
        spent = (await muster.results(request))[0].usage.tokens

        await muster.client.cancel(request)
        answer = await muster.answer(request)

        assert (answer.status, answer.usage.tokens > spent) == (AnswerStatus.CANCELLED, True)


@pytest.mark.sweep
async def test_i9_calls_that_a_crash_may_have_paid_leave_less_for_the_next_supervisor(tmp_path: Path) -> None:
    async with thinking_team(tmp_path, DRAFT) as (muster, server):
        muster.spawn("supervisor", "s1", die_at="after:reserved", env=server.environment)
        request = await muster.client.submit(ASKED, budget={"tokens": 5_000})
        assert await muster.ended("s1") == KILLED

        await muster.start("supervisor", "s2", env=server.environment)
        answer = await muster.answer(request)

        assert (answer.status, answer.error_class, server.requests) == (AnswerStatus.FAILED, "budget", [])
        assert answer.usage.tokens == 5_000


@pytest.mark.sweep
async def test_i9_a_supervisor_killed_while_it_composes_leaves_the_rest_to_be_merged(tmp_path: Path) -> None:
    held = message(text("never read"))
    script = [DRAFT, CannedReply(held.body, is_held=True)]
    async with thinking_team(tmp_path, *script) as (muster, server):
        await muster.start("supervisor", "s1", env=server.environment)
        request = await muster.client.submit(ASKED, budget={"tokens": 9_000})
        await muster.until(lambda: len(server.requests) == len(script), "the supervisor composes")
        muster.kill("s1")

        await muster.start("supervisor", "s2", env=server.environment)
        answer = await muster.answer(request)

        assert (answer.status, len(server.requests)) == (AnswerStatus.DONE, 2)
        assert "one" in answer.text
        assert answer.usage.tokens <= 9_000
        assert (await purposes(muster, request))[-1][0] == "compose"
