"""A tool with an effect on the outside world has it once, whatever becomes of its worker."""

from pathlib import Path

import pytest

from muster_protocol.messages import AnswerStatus
from muster_testing.messages_server import message, text
from tests.buying_role import received
from tests.flow.paying_team import conversation, paying
from tests.guards import guards

EFFECTS = "libs/agent/muster_agent/tools/effects.py"
STEPS = [
    f"{when}:{what}"
    for what in ("claim", "turn=1", "effect=1", "effect=2", "outputs=1", "turn=2", "result")
    for when in ("before", "after")
]


SEND = '{use: "tests.buying_role:send", effect: true, env: [MUSTER_TEST_FOLDER]}'
BUY = '{use: "tests.buying_role:buy", effect: keyed, env: [MUSTER_TEST_FOLDER]}'


@guards(EFFECTS, "        await self._turns.settle(effect, outcome)\n", rule="I9", seconds=40)
async def test_an_effect_whose_outcome_is_stored_is_not_had_again(tmp_path: Path):
    script = conversation(2, "send", article="a book")
    async with paying(tmp_path, script, tools=SEND) as team:
        request = await team.submit()
        await team.dies("w1", "before:outputs=1")
        await team.start("w2")

        assert (await team.muster.answer(request)).status is AnswerStatus.DONE
        assert received(tmp_path) == ["a book"]
        said = team.server.requests[1]["messages"][-1]["content"][0]["content"]
        assert "a book is on its way" in said


@guards(EFFECTS, '            raise UnknownOutcome(_unknown(call, "its worker ended"))', rule="I9", seconds=40)
async def test_an_effect_without_a_key_of_which_nobody_knows_is_not_had_again_and_fails_the_task(tmp_path: Path):
    script = conversation(2, "send", article="a book")
    async with paying(tmp_path, script, tools=SEND) as team:
        request = await team.submit()
        await team.dies("w1", "before:effect=2")
        await team.start("w2")
        answer = await team.muster.answer(request)

        (result,) = await team.muster.results(request)
        assert answer.status is AnswerStatus.FAILED
        assert result.error is not None
        assert (result.error.error_class, answer.tasks[0].attempts) == ("unknown_outcome", 1)
        assert "'send'" in result.error.message
        assert received(tmp_path) == ["a book"]
        assert len(team.server.requests) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("step", STEPS)
async def test_a_keyed_effect_reaches_its_receiver_under_one_key_at_whatever_step_the_worker_dies(
    tmp_path: Path, step: str
):
    script = conversation(2, "buy", article="a book")
    script = [*script, script[-1]] if step == "before:turn=2" else script
    script = [script[0], *script] if step == "before:turn=1" else script
    async with paying(tmp_path, script, tools=BUY) as team:
        request = await team.submit()
        await team.dies("w1", step)
        await team.start("w2")

        assert (await team.muster.answer(request)).status is AnswerStatus.DONE
        orders = received(tmp_path)
        assert len(set(orders)) == 1
        assert len(orders) <= 2


@pytest.mark.sweep
async def test_an_effect_outlives_a_new_attempt_that_begins_anew(tmp_path: Path):
    script = conversation(2, "buy", article="a book")
    bad = message(text("cut o"), stop="max_tokens")
    more = {"max_turns": "10", "retry": "{refine: false, backoff_seconds: 0.1}"}
    async with paying(tmp_path, [script[0], bad, *script], tools=BUY, role=more) as team:
        await team.start("w1")
        answer = await team.muster.answer(await team.submit())

        assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.DONE, 2)
        assert len(received(tmp_path)) == 1
