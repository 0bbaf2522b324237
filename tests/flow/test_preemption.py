"""`preempt: true`: a high task for which no slot is free takes that of a low one, which loses nothing but time."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus, ResultStatus
from muster_testing.messages_server import MessagesServer, message, running_messages_server, text, tool_use
from muster_testing.waiting import until_asked
from tests.guards import guards
from tests.harness import Muster, running

NARROW = '  - {name: narrow, slots: 1, run: "muster_testing.roles:scripted"}\n'
PREEMPT = "priorities: {preempt: true}\n"
CLEANING = '  - {name: cleaner, run: "tests.misbehaving_role:clean_up"}\n'
BLOCKING = '  - {name: blocker, run: "tests.misbehaving_role:block"}\n'
THINKING = "  - {name: thinker, model: claude-sonnet-5-5, persona: You add., tools: [calculate]}\n"
ATTEMPT = "services/worker/muster_worker/attempt.py"
LANES = "services/worker/muster_worker/lanes.py"


@pytest.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path, roles=CLEANING + BLOCKING + PREEMPT) as muster:
        yield muster


def held() -> list[dict[str, Any]]:
    return [{"id": "held", "orders": {"until": "go"}}]


async def hand_backs(muster: Muster, request: str) -> list[dict[str, Any]]:
    stored = await muster.bus.read(subjects.events(request), from_leader=True)
    return [json.loads(raw.data) for raw in stored if raw.headers["kind"] == "handed_back"]


async def low_runs(muster: Muster, tasks: list[dict[str, Any]]) -> str:
    """A low request whose tasks have all slots of the worker."""
    low = await muster.submit(tasks, priority="low")
    await muster.until(lambda: len(muster.executions(low)) == len(tasks), "the low tasks run")
    return low


@guards(ATTEMPT, "        self._gives_way = why\n", rule="I12", replace="        self._gives_way = ''\n")
async def test_the_low_task_that_was_begun_last_is_handed_back_and_runs_again_as_the_same_attempt(muster: Muster):
    services = {"s1": ("supervisor",), "w1": ("worker", "--slots", "2"), "c1": ("coordinator",)}
    await asyncio.gather(*(muster.start(kind, name, *options) for name, (kind, *options) in services.items()))
    early = await low_runs(muster, held())
    late = await low_runs(muster, held())

    high = await muster.answer(await muster.submit([{"id": "h"}], priority="high"))
    muster.release("go")
    answers = [await muster.answer(request) for request in (early, late)]

    assert [answer.status for answer in (high, *answers)] == [AnswerStatus.DONE] * 3
    assert (muster.executions(early)["held"], muster.executions(late)["held"]) == (1, 2)
    assert [(note["task_id"], note["why"]) for note in await hand_backs(muster, late)] == [
        ("held", "preempted by high")
    ]
    assert answers[1].tasks[0].attempts == 1
    assert [result.delivery for result in await muster.results(late)] == [2]
    said = [step.error for step in (await muster.client.timeline(late)).steps]
    assert "preempted by high" in said
    assert (await muster.client.view(late)).conflicts == 0


async def test_the_slots_of_a_role_that_the_team_file_limits_are_taken_over_too(tmp_path: Path):
    """The worker has free slots, but the role has none; a low task of another role is no help."""
    async with running(tmp_path, roles=NARROW + PREEMPT) as muster:
        await asyncio.gather(muster.start("worker", "w1", "--slots", "5"), muster.start("supervisor", "s1"))
        low = await low_runs(muster, [{**task, "tag": "narrow"} for task in held()])
        other = await low_runs(muster, held())

        high = await muster.answer(await muster.submit([{"id": "h", "tag": "narrow"}], priority="high"))
        muster.release("go")
        answers = [await muster.answer(request) for request in (low, other)]

        assert [answer.status for answer in (high, *answers)] == [AnswerStatus.DONE] * 3
        assert (muster.executions(low)["held"], muster.executions(other)["held"]) == (2, 1)


async def test_what_is_preempted_again_and_again_ends_at_last_and_is_no_poison(muster: Muster):
    await asyncio.gather(muster.start("worker", "w1", "--slots", "1"), muster.start("supervisor", "s1"))
    low = await low_runs(muster, held())
    for turn in range(3):
        high = await muster.submit([{"id": "h"}], priority="high")
        assert (await muster.answer(high)).status is AnswerStatus.DONE
        await muster.until(lambda turn=turn: muster.executions(low)["held"] == turn + 2, "the low one runs again")

    last = await muster.submit([{"id": "h"}], priority="high")
    await muster.until_log(last, lambda state: state.in_flight == 1)
    muster.release("go")

    assert (await muster.answer(low)).status is AnswerStatus.DONE
    assert (await muster.answer(last)).status is AnswerStatus.DONE
    assert muster.executions(low)["held"] == 4
    assert await muster.errors() == []


@guards(LANES, "if executor.can_be_stopped(tag)", rule="I3", replace="if tag")
async def test_a_plain_function_is_left_alone_for_nobody_can_stop_its_thread(muster: Muster):
    await asyncio.gather(muster.start("worker", "w1", "--slots", "1"), muster.start("supervisor", "s1"))
    blocking = [{"id": "b", "tag": "blocker", "description": '{"seconds": 1.5}'}]
    low = await low_runs(muster, blocking)

    high = await muster.answer(await muster.submit([{"id": "h"}], priority="high"))

    assert high.status is AnswerStatus.DONE
    assert (await muster.answer(low)).status is AnswerStatus.DONE
    assert (muster.executions(low)["b"], await hand_backs(muster, low)) == (1, [])


@contextlib.asynccontextmanager
async def thinking(folder: Path) -> AsyncGenerator[tuple[Muster, MessagesServer]]:
    """A worker with one slot whose model asks for a tool, and then takes for ever."""
    call = message(tool_use("call_1", "calculate", expression="1 + 1"), stop="tool_use")
    last = replace(message(text("2")), is_held=True)
    async with running(folder, roles=THINKING + PREEMPT) as muster, running_messages_server(call, last) as server:
        worker = muster.start("worker", "w1", "--slots", "1", env=server.environment)
        await asyncio.gather(worker, muster.start("supervisor", "s1"))
        yield muster, server


@guards(ATTEMPT, "await self._store_spent(self._gives_way)", rule="I12", seconds=60)
async def test_what_a_preempted_run_had_spent_is_counted(tmp_path: Path):
    async with thinking(tmp_path) as (muster, server):
        low = await muster.submit([{"id": "t", "tag": "thinker", "description": "add 1 and 1"}], priority="low")
        await muster.until(lambda: len(server.requests) == 2, "its last turn is awaited")

        assert (await muster.answer(await muster.submit([{"id": "h"}], priority="high"))).status is AnswerStatus.DONE
        await muster.until_log(low, lambda state: state.usage.tokens > 0)
        found = await muster.results(low)

    assert [(result.status, result.usage.tokens) for result in found[:1]] == [(ResultStatus.CANCELLED, 120)]


@guards(ATTEMPT, " or self._meter.must_go_on", rule="I9", seconds=60)
async def test_i9_what_has_spent_of_a_budget_does_not_give_way_since_its_next_run_might_spend_it_again(tmp_path: Path):
    async with thinking(tmp_path) as (muster, server):
        tasks = [{"id": "t", "tag": "thinker", "description": "add 1 and 1"}]
        low = await muster.submit(tasks, priority="low", budget={"tokens": 50_000})
        await muster.until(lambda: len(server.requests) == 2, "its last turn is awaited")
        high = await muster.submit([{"id": "h"}], priority="high")

        async def is_handed_back() -> bool:
            return bool(await hand_backs(muster, high) or await hand_backs(muster, low))

        await until_asked(is_handed_back, "one of the two is handed back")
        assert (await muster.results(low), await hand_backs(muster, low)) == ([], [])


@pytest.mark.parametrize(
    "fault", ["kill", pytest.param("pause", marks=pytest.mark.sweep), pytest.param("stop", marks=pytest.mark.sweep)]
)
async def test_a_worker_that_fails_between_taking_the_high_task_and_handing_back_the_low_one_loses_neither(
    muster: Muster, fault: str
):
    """Its role cleans up when it is told to give way: meanwhile the worker holds both."""
    await asyncio.gather(muster.start("worker", "w1", "--slots", "1"), muster.start("supervisor", "s1"))
    low = await low_runs(muster, [{"id": "c", "tag": "cleaner", "description": '{"finishes": false}'}])
    high = await muster.submit([{"id": "h"}], priority="high")
    await muster.until(lambda: bool(muster.traces("cleaning")), "the low one is told to give way")

    match fault:
        case "kill":
            muster.kill("w1")
        case "pause":
            muster.signal("w1", signal.SIGSTOP)
            await muster.past_lease()
        case _:
            muster.signal("w1", signal.SIGTERM)
    muster.release("go")
    await muster.start("worker", "w2")
    answers = [await muster.answer(request) for request in (high, low)]
    if fault == "pause":
        muster.signal("w1", signal.SIGCONT)
    muster.release("cleaned")
    await muster.until_settled(subjects.ALL_TASKS)

    assert [answer.status for answer in answers] == [AnswerStatus.DONE] * 2
    for request, task in ((high, "h"), (low, "c")):
        counted = [result.task_id for result in await muster.results(request) if result.status is ResultStatus.DONE]
        assert counted == [task]
    assert muster.executions(high)["h"] == 1
