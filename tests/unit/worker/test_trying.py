"""One role alone, without a broker."""

from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import ResultStatus
from muster_testing.messages_server import message, refusal, running_messages_server, text, tool_use
from muster_worker.trying.trial import Trying, try_role
from tests.buying_role import received
from tests.unit.agent.teams import team

ADDER = {"name": "adder", "model": "claude-sonnet-5-5", "tools": ["calculate"]}
BUY: dict[str, Any] = {"use": "tests.buying_role:buy", "isolated": False}
AGAIN = refusal(529, "overloaded_error", "later", retry_after="0")


async def test_each_call_of_the_model_is_kept_also_one_that_failed():
    call = message(tool_use("c1", "calculate", expression="2 + 3"), stop="tool_use")
    async with running_messages_server(AGAIN, call, message(text("5"))) as server:
        trying = Trying(team(ADDER), "adder", server.environment)
        trial = await try_role(trying, "Add 2 and 3", inputs={"unit": "apples"}, outputs={"t0": "2"})

    assert (trial.outcome.status, trial.output) == (ResultStatus.DONE, "5")
    failed, first, last = trial.asked
    assert failed.reply is None
    assert "later" in failed.error
    assert (first.error, len(first.ask.transcript), len(last.ask.transcript)) == ("", 0, 1)
    assert last.ask.transcript[0].outputs[0].text == "5"
    assert trial.outcome.usage.model_calls == 2


async def test_no_receiver_takes_the_effects_of_two_trials_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUSTER_TEST_FOLDER", str(tmp_path))
    buyer = {"name": "buyer", "model": "claude-sonnet-5-5", "tools": [{**BUY, "effect": "keyed"}]}
    call = message(tool_use("c1", "buy", article="a book"), stop="tool_use")
    for _ in range(2):
        async with running_messages_server(call, message(text("done"))) as server:
            await try_role(Trying(team(buyer), "buyer", server.environment), "Buy a book")

    assert len(set(received(tmp_path))) == 2


async def test_a_failure_is_an_outcome_and_no_error():
    trying = Trying(team({**ADDER, "model": "offline"}), "adder", {})
    trial = await try_role(trying, "Add", model="claude-sonnet-5-5")

    assert trial.outcome.status is ResultStatus.FAILED
    assert trial.outcome.error is not None
    assert "needs ANTHROPIC_API_KEY" in trial.outcome.error.message
    assert trial.asked == []
