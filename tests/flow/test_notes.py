"""What a person says about a request reaches whoever thinks about it next: planning, refining, a task that runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster_protocol.messages import AnswerStatus
from muster_testing.messages_server import message, text, tool_use
from tests.flow.thinking_team import HANGS, failing, thinking
from tests.guards import guards

NOTE = "Leave out the prices of last year."
TASK = {"id": "a", "description": "think", "tag": "thinker"}
SAID = f">\\n{NOTE}\\n</request-"  # inside the boundary of what a person says


@guards("services/supervisor/muster_supervisor/steps/seen.py", "await read_controls(owner, 0)", rule="I1", seconds=40)
async def test_a_note_that_comes_before_the_plan_reaches_whoever_plans(tmp_path: Path) -> None:
    async with thinking(tmp_path, HANGS) as team:
        await team.muster.stop("s1")
        request = await team.muster.client.submit("Compare three clouds.")
        await team.muster.client.note(request, NOTE)

        await team.muster.start("supervisor", "s2", env=team.server.environment)
        await team.asked()

        assert SAID in team.said(0)


@pytest.mark.sweep
async def test_a_note_that_comes_while_a_task_fails_reaches_whoever_describes_it_anew(tmp_path: Path) -> None:
    async with thinking(tmp_path, replace(failing(), is_held=True), HANGS) as team:
        request = await team.muster.client.submit(plan={"tasks": [TASK]})
        await team.asked()
        await team.muster.client.note(request, NOTE)
        await team.muster.until_log(request, lambda state: bool(state.notes))

        team.server.released.set()
        await team.asked(2)

        assert SAID not in team.said(0)
        assert "recover from failure" in team.said(1)
        assert SAID in team.said(1)


@pytest.mark.sweep
async def test_a_note_that_comes_while_a_task_runs_is_in_its_next_model_call(tmp_path: Path) -> None:
    calls = tool_use("t1", "calculate", expression="1 + 1")
    first, last = replace(message(calls, stop="tool_use"), is_held=True), message(text("2"))
    async with thinking(tmp_path, first, last) as team:
        request = await team.muster.client.submit(plan={"tasks": [TASK]})
        await team.asked()
        await team.muster.client.note(request, NOTE)
        await team.muster.until_log(request, lambda state: bool(state.notes))

        team.server.released.set()
        answer = await team.muster.answer(request)

        assert (answer.status, answer.text) == (AnswerStatus.DONE, "2")
        assert SAID not in team.said(0)
        assert SAID in team.said(1)
