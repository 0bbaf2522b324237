"""I9: what workers spend is in the budget, also what they spent before they died or were told to stop."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster_bus.turns import TurnsOfTask
from muster_protocol.messages import AnswerStatus, ResultStatus
from muster_testing.messages_server import CannedReply
from tests.flow.paying_team import EACH, READ, Paying, conversation, paying
from tests.guards import guards
from tests.harness import Muster, running
from tests.thinking_role import THINKER

STORED = "services/worker/muster_worker/turns/stored.py"
LOST = "services/supervisor/muster_supervisor/steps/lost.py"


def held(reply: CannedReply) -> CannedReply:
    return replace(reply, is_held=True)


def most_paid(team: Paying, *lost: int) -> int:
    """What the server may have counted: of the calls whose replies nobody got, as much as they allow."""
    calls = enumerate(team.server.requests)
    return sum(READ + call["max_tokens"] if number in lost else EACH for number, call in calls)


@guards(STORED, 'update={"asking": most}', rule="I9", replace="update={}", seconds=40)
async def test_i9_a_call_that_was_under_way_when_its_worker_was_killed_is_charged(tmp_path: Path):
    script = conversation(3)
    async with paying(tmp_path, [held(script[0]), *script]) as team:
        await team.start("w1")
        request = await team.submit(budget={"tokens": 12_000})
        await team.asked(1)
        team.muster.kill("w1")
        await team.start("w2")
        answer = await team.muster.answer(request)

        assert (answer.status, len(team.server.requests)) == (AnswerStatus.DONE, 4)
        assert most_paid(team, 0) <= answer.usage.tokens <= 12_000


@pytest.mark.sweep
async def test_i9_workers_killed_in_their_calls_one_after_the_other_never_spend_more_than_the_budget(tmp_path: Path):
    async with paying(tmp_path, [held(reply) for reply in conversation(9)]) as team:
        request = await team.submit(budget={"tokens": 3_000})
        for number in (1, 2):
            await team.start(f"w{number}")
            await team.asked(number)
            team.muster.kill(f"w{number}")
        await team.start("w3")
        answer = await team.muster.answer(request)

        (result,) = await team.muster.results(request)
        assert result.error is not None
        assert (answer.status, result.error.error_class, len(team.server.requests)) == (
            AnswerStatus.FAILED,
            "budget",
            2,
        )
        assert most_paid(team, 0, 1) <= answer.usage.tokens <= 3_000


@guards(
    LOST,
    'result.model_copy(update={"usage": known',
    rule="I9",
    replace='result.model_copy(update={"role": known',
    seconds=40,
)
async def test_i9_what_a_dead_worker_had_spent_is_charged_though_nobody_takes_its_task(tmp_path: Path):
    script = conversation(3)
    role = {"timeout_seconds": "1", "retry": "{max_attempts: 1}"}
    async with paying(tmp_path, [script[0], held(script[1])], role=role) as team:
        await team.start("w1")
        request = await team.submit(budget={"tokens": 12_000})
        await team.asked(2)
        team.muster.kill("w1")
        answer = await team.muster.answer(request)

        (result,) = await team.muster.results(request)
        assert (answer.status, result.worker) == (AnswerStatus.FAILED, "")
        assert most_paid(team, 1) <= answer.usage.tokens <= 12_000


@pytest.mark.sweep
async def test_i9_a_call_that_a_cancel_ends_is_charged(tmp_path: Path):
    script = conversation(3)
    async with paying(tmp_path, [script[0], held(script[1])]) as team:
        await team.start("w1")
        request = await team.submit(budget={"tokens": 12_000})
        await team.asked(2)
        await team.muster.client.cancel(request)
        assert (await team.muster.answer(request)).status is AnswerStatus.CANCELLED
        await team.muster.until_log(request, lambda state: state.usage.tokens > EACH)

        (result,) = await team.muster.results(request)
        assert result.status is ResultStatus.CANCELLED
        assert result.usage.tokens >= EACH + team.server.requests[1]["max_tokens"]


async def test_functions_and_the_offline_model_store_no_turns(tmp_path: Path):
    async with running(tmp_path, roles=THINKER % "look_up") as muster:
        await muster.start("worker", "w1")
        await muster.start("supervisor", "s1")
        tasks = [{"id": "a"}, {"id": "b", "tag": "thinker", "description": "please look"}]
        request = await muster.submit(tasks)

        assert (await muster.answer(request)).status is AnswerStatus.DONE
        assert await stored(muster, request) == [0, 0]


async def stored(muster: Muster, request: str) -> list[int]:
    return [(await TurnsOfTask(muster.bus, request, task).read()).last_sequence for task in ("a", "b")]
