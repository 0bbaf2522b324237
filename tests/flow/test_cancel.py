"""A cancel is answered within a second, whatever the request is about, and what runs for it stops.

The figures are printed: on a busy machine they prove nothing, so the limit is generous.
"""

import json
import time
from pathlib import Path

import pytest

from muster_protocol.messages import AnswerStatus
from tests.flow.thinking_team import HANGS, failing, thinking
from tests.guards import guards
from tests.harness import Muster

LIMIT_SECONDS = 2.5


async def cancelled(muster: Muster, request: str, while_what: str) -> None:
    """Cancel, and see how long it takes from then until the answer is there."""
    await muster.client.cancel(request, "enough")
    began = time.monotonic()
    answer = await muster.answer(request)
    seconds = time.monotonic() - began
    print(f"cancelled while {while_what}: answered after {seconds:.2f} s")
    assert answer.status is AnswerStatus.CANCELLED
    assert seconds < LIMIT_SECONDS


@guards("services/supervisor/muster_supervisor/owner.py", "self.is_ending.set()", rule="I4", seconds=40)
async def test_while_a_plan_is_made(tmp_path: Path) -> None:
    async with thinking(tmp_path, HANGS) as team:
        request = await team.muster.client.submit("Compare three clouds.")
        await team.asked()

        await cancelled(team.muster, request, "planning")


def tasks(**orders: dict[str, object]) -> dict[str, object]:
    return {
        "tasks": [
            {"id": name, "description": json.dumps(said), "tag": said.get("tag", "scripted")}
            for name, said in orders.items()
        ]
    }


@pytest.mark.sweep
async def test_while_a_model_and_a_function_work_which_stop(tmp_path: Path) -> None:
    async with thinking(tmp_path, HANGS) as team:
        request = await team.muster.client.submit(plan=tasks(sleeps={"sleep": 600}, thinks={"tag": "thinker"}))
        await team.asked()
        await team.muster.until(lambda: len(team.muster.traces()) == 1, "the function runs")

        await cancelled(team.muster, request, "a model and a function work")

        await team.muster.until(lambda: len(team.muster.traces("over")) == 1, "the function stops", LIMIT_SECONDS)
        await team.muster.until_settled("tasks.thinker", LIMIT_SECONDS)
        await team.muster.until_settled("tasks.scripted", LIMIT_SECONDS)


@pytest.mark.sweep
async def test_while_a_failed_task_is_described_anew(tmp_path: Path) -> None:
    async with thinking(tmp_path, failing(), HANGS) as team:
        plan = {
            "tasks": [
                {"id": "a", "description": "think", "tag": "thinker", "expected_output": {"type": "object"}},
                {"id": "b", "description": json.dumps({"sleep": 600}), "tag": "scripted"},
            ]
        }
        request = await team.muster.client.submit(plan=plan)
        await team.asked(2)
        assert "recover from failure" in team.said(1)

        await cancelled(team.muster, request, "refining")


@pytest.mark.sweep
async def test_while_the_answer_is_composed(tmp_path: Path) -> None:
    async with thinking(tmp_path, HANGS) as team:
        plan = tasks(a={"output": "one"}, b={"output": "two"})
        request = await team.muster.client.submit(plan=plan)
        await team.asked()

        await cancelled(team.muster, request, "composing")


async def test_while_a_person_is_waited_for(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a"}], approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))

    await cancelled(muster, request, "a person is waited for")
