"""What a model role has done for a task is not paid again, whatever becomes of its worker."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from muster_protocol.messages import AnswerStatus
from muster_testing.messages_server import message, text
from tests.flow.paying_team import EACH, TURNS, conversation, paying
from tests.guards import guards

STORED = "services/worker/muster_worker/turns/stored.py"
STEPS = [
    f"{when}:{kind}={number}"
    for kind, numbers in (("claim", [1]), ("turn", range(1, TURNS + 1)), ("outputs", range(1, TURNS)))
    for number in numbers
    for when in ("before", "after")
]


@guards(STORED, "        await self._store(turn)\n", rule="I9", seconds=40)
async def test_workers_that_are_killed_one_after_the_other_pay_at_most_one_call_more_each(tmp_path: Path):
    script = conversation()
    async with paying(tmp_path, [*script[:3], *script[2:]]) as team:
        request = await team.submit()
        await team.dies("w1", "after:turn=2")  # nothing is lost
        await team.dies("w2", "before:turn=1")  # its reply is
        await team.start("w3")
        answer = await team.muster.answer(request)

        (result,) = await team.muster.results(request)
        assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.DONE, 1)
        assert len(team.server.requests) == TURNS + 1
        assert (result.usage.model_calls, result.usage.tokens) == (TURNS, TURNS * EACH)
        assert (len(result.tool_calls), result.output) == (TURNS - 1, "the answer")
        assert answer.usage.tokens == TURNS * EACH


@pytest.mark.sweep
@pytest.mark.parametrize("step", [*STEPS, "before:result", "after:result", "before:ack"])
async def test_a_worker_killed_at_any_step_of_ten_turns_pays_at_most_one_call_more(tmp_path: Path, step: str):
    when, _, number = step.partition(":turn=")
    is_lost = when == "before" and number != ""
    script = conversation()
    lost = [script[int(number) - 1]] if is_lost else []
    async with paying(tmp_path, [*script[: int(number or 1) - 1], *lost, *script[int(number or 1) - 1 :]]) as team:
        request = await team.submit()
        await team.dies("w1", step)
        await team.start("w2")
        answer = await team.muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        assert len(team.server.requests) == TURNS + is_lost
        assert answer.usage.tokens == TURNS * EACH


@pytest.mark.sweep
async def test_a_task_whose_workers_die_again_and_again_is_no_poison_while_it_comes_further(tmp_path: Path):
    async with paying(tmp_path, conversation(6)) as team:
        request = await team.submit()
        for number in range(1, 6):
            await team.dies(f"w{number}", "after:turn=1")
        await team.start("w6")

        assert (await team.muster.answer(request)).status is AnswerStatus.DONE
        assert len(team.server.requests) == 6


@guards(
    STORED,
    'raise Overtaken("somebody else has claimed the task")',
    rule="I9",
    replace="return",
    seconds=40,
)
async def test_a_worker_that_was_paused_past_its_lease_makes_no_further_call(tmp_path: Path):
    script = conversation(4)
    late = replace(script[1], is_held=True)
    async with paying(tmp_path, [script[0], late, *script[1:]]) as team:
        await team.start("w1")
        request = await team.submit()
        await team.asked(2)
        team.muster.signal("w1", signal.SIGSTOP)
        await team.start("w2")
        answer = await team.muster.answer(request)
        asked = len(team.server.requests)

        team.server.released.set()
        team.muster.signal("w1", signal.SIGCONT)
        await team.muster.until_logged("w1", "left to another worker")
        assert (answer.status, len(team.server.requests), asked) == (AnswerStatus.DONE, 5, 5)
        lost = await team.until_results(request, 2)
        assert [result.usage.tokens for result in lost] == [4 * EACH, EACH]  # the reply that came too late was paid


@pytest.mark.sweep
async def test_what_a_stopped_worker_has_done_is_gone_on_with(tmp_path: Path):
    script = conversation(4)
    held = replace(script[1], is_held=True)
    async with paying(tmp_path, [script[0], held, *script[1:]]) as team:
        await team.start("w1")
        request = await team.submit()
        await team.asked(2)
        assert await team.muster.stop("w1") == 0
        await team.start("w2")
        answer = await team.muster.answer(request)

        assert (answer.status, len(team.server.requests)) == (AnswerStatus.DONE, 5)
        assert answer.usage.tokens == 4 * EACH


async def test_a_new_attempt_after_a_timeout_goes_on_and_after_a_bad_output_begins_anew(tmp_path: Path):
    script = conversation(3)
    bad = message(text("cut o"), stop="max_tokens")
    role = {"timeout_seconds": "1", "retry": "{refine: false, backoff_seconds: 0.1}"}
    async with paying(tmp_path, [script[0], replace(script[1], is_held=True), bad, *script], role=role) as team:
        await team.start("w1")
        answer = await team.muster.answer(await team.submit())

        assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.DONE, 3)
        assert [len(request["messages"]) for request in team.server.requests] == [1, 3, 3, 1, 3, 5]


@pytest.mark.sweep
async def test_the_broker_is_restarted_between_two_turns(tmp_path: Path):
    script = conversation(4)
    async with paying(tmp_path, [script[0], replace(script[1], is_held=True), *script[2:]]) as team:
        await team.start("w1")
        request = await team.submit()
        await team.asked(2)
        team.muster.broker.kill()
        await team.muster.broker.start()
        team.server.released.set()

        assert (await team.muster.answer(request)).status is AnswerStatus.DONE
        assert len(team.server.requests) == 4


async def test_the_turns_of_an_answered_request_are_removed(tmp_path: Path):
    async with paying(tmp_path, conversation(2)) as team:
        await team.start("w1")
        request = await team.submit()
        await team.muster.answer(request)
        await team.muster.until_settled("requests.default")

        assert (await team.turns(request)).last_sequence == 0


async def test_a_task_that_a_dead_worker_had_added_is_done_all_the_same(tmp_path: Path):
    added = conversation(2, "add_task", description="Add two and two", tag="thinker")
    role = {"spawns": "true"}
    async with paying(tmp_path, [added[0], added[1], *added[1:], message(text("4"))], role=role) as team:
        request = await team.submit()
        await team.dies("w1", "before:turn=2")
        await team.start("w2")
        answer = await team.muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        assert sorted(row.id for row in answer.tasks) == ["t", "t-s1"]
