"""The review after a round and the replacement of a failed task, by a model through the strict Messages server."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muster_protocol.messages import Answer, AnswerStatus, Extended, Reserved
from muster_testing.messages_server import CannedReply, MessagesServer, message, refusal, running_messages_server, text
from muster_testing.otlp import Collector
from tests.flow.trees import has, tree_of
from tests.guards import guards
from tests.harness import LEASE_SECONDS, Muster

TEAM = """\
team: default
supervisor: {model: claude-sonnet-5-5}
roles:
  - {name: scripted, tags: [other], description: Does what its orders say, run: "muster_testing.roles:scripted"}
limits: {deadline_seconds: 120, rounds: %d, replacements: %d, max_attempts: 1}
"""
ASKED = "Say one and say two"
REASON = "Nobody had said why."


def task(task_id: str, *needs: str, **orders: object) -> dict[str, Any]:
    orders = orders or {"output": f"said {task_id}"}
    fields = {"tag": "scripted", "dependencies": needs, "expected_output": ""}
    return {"id": task_id, "description": json.dumps({**orders, "of": task_id}), **fields}


def plan(*tasks: dict[str, Any]) -> CannedReply:
    fields = {"goal": ASKED, "tasks": tasks, "aggregation": "merge", "final_instruction": "Together"}
    return message(text(json.dumps(fields)), read=900, written=300)


def verdict(word: str, *tasks: dict[str, Any], drop: tuple[str, ...] = ()) -> CannedReply:
    fields = {"verdict": word, "reason": REASON, "tasks": tasks} | ({"drop": drop} if drop or word == "keep" else {})
    return message(text(json.dumps(fields)), read=700, written=100)


PLAN = plan(task("one"), task("two"))
MORE = verdict("more", task("why", "one"))
COMPOSED = message(text("One and two."), read=500, written=20)
BROKEN = plan(task("t1", fail="no such book", final=True), task("t2"), task("t3", "t1", "t2"))
REPLACED = verdict("replace", task("t4"), task("t5", "t4", "t2"), drop=("t3",))


@asynccontextmanager
async def thinking(
    folder: Path, *script: CannedReply, rounds: int = 1, replacements: int = 0
) -> AsyncGenerator[tuple[Muster, MessagesServer]]:
    (folder / "team.yaml").write_text(TEAM % (rounds, replacements))
    async with (
        running_messages_server(*script) as server,
        Muster.provisioned(folder / "team.yaml", folder, lease_seconds=LEASE_SECONDS) as muster,
    ):
        await muster.start("worker", "w1")
        yield muster, server


async def asked(muster: Muster, server: MessagesServer, **fields: Any) -> tuple[str, Answer]:
    await muster.start("supervisor", "s1", env=server.environment)
    request = await muster.client.submit(ASKED, **fields)
    return request, await muster.answer(request)


async def growths(muster: Muster, request: str) -> list[Extended]:
    return [entry.body for entry in await muster.entries(request, Extended) if isinstance(entry.body, Extended)]


async def purposes(muster: Muster, request: str) -> list[str]:
    found = [entry.body for entry in await muster.entries(request, Reserved)]
    return [body.purpose for body in found if isinstance(body, Reserved) and body.purpose]


@guards("services/supervisor/muster_supervisor/carry_out.py", "return cause in self._owner.growing", rule="I2")
async def test_a_review_asks_for_what_is_missing_and_the_answer_says_why(tmp_path: Path) -> None:
    async with thinking(tmp_path, PLAN, MORE, COMPOSED) as (muster, server):
        request, answer = await asked(muster, server, budget={"tokens": 80_000})

        (grown,) = await growths(muster, request)
        assert (answer.status, answer.text) == (AnswerStatus.DONE, "One and two.")
        assert answer.growth == (f"a review of the results added 1 task (why): {REASON}",)
        assert (grown.cause, grown.usage.tokens) == ("review:1", 800)
        assert await purposes(muster, request) == ["plan", "review:1", "compose"]
        assert answer.usage.tokens == 1_200 + 800 + 520
        assert muster.executions(request) == {"one": 1, "two": 1, "why": 1}
        assert "said one" in json.dumps(server.requests[1])
        assert all(f"said {name}" in json.dumps(server.requests[2]) for name in ("one", "two", "why"))


async def test_a_failed_task_is_replaced_and_nothing_is_missing(tmp_path: Path) -> None:
    async with thinking(tmp_path, BROKEN, REPLACED, rounds=0, replacements=1) as (muster, server):
        request, answer = await asked(muster, server, budget={"tokens": 80_000})

        rows = {row.id: row.status.value for row in answer.tasks}
        assert rows == {"t1": "failed", "t2": "done", "t4": "done", "t5": "done"}
        assert (answer.status, answer.text, answer.gaps) == (AnswerStatus.DONE, "said t5", ())
        assert answer.growth == (f"t4, t5 took the place of t1, t3: {REASON}",)
        assert await purposes(muster, request) == ["plan", "failure:t1"]
        assert muster.executions(request) == {"t1": 1, "t2": 1, "t4": 1, "t5": 1}


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([verdict("more"), verdict("more")], "said nothing that can be used: tasks: more names at least one task"),
        pytest.param([refusal(404, "not_found_error", "no such model")], "not found (404)", marks=pytest.mark.sweep),
        pytest.param([message(text("I cannot"), stop="refusal")], "the model declines", marks=pytest.mark.sweep),
    ],
)
async def test_a_model_that_says_nothing_of_use_leaves_the_answer_as_it_would_be(
    tmp_path: Path, replies: list[CannedReply], reason: str
) -> None:
    async with thinking(tmp_path, PLAN, *replies, COMPOSED) as (muster, server):
        request, answer = await asked(muster, server)

        (grown,) = await growths(muster, request)
        assert (answer.status, answer.text, len(server.requests)) == (
            AnswerStatus.DONE,
            "One and two.",
            2 + len(replies),
        )
        assert grown.refused is not None
        assert reason in grown.refused.message
        assert answer.growth[0].startswith("the results were not reviewed: ")


@pytest.mark.parametrize(
    ("fields", "team", "expected"),
    [
        pytest.param({"deadline_seconds": 9}, {}, "too few for more work", marks=pytest.mark.sweep),
        ({"budget": {"tasks": 2}}, {}, "the plan has as many tasks as it may have"),
        pytest.param({"num_tasks": 2}, {}, None, marks=pytest.mark.sweep),
        pytest.param({}, {"rounds": 0}, None, marks=pytest.mark.sweep),
    ],
)
async def test_nobody_reviews_what_leaves_no_room_for_more(
    tmp_path: Path, fields: Mapping[str, Any], team: Mapping[str, int], expected: str | None
) -> None:
    async with thinking(tmp_path, PLAN, COMPOSED, **team) as (muster, server):
        request, answer = await asked(muster, server, **fields)

        found = [grown.refused.message for grown in await growths(muster, request) if grown.refused]
        assert (answer.status, answer.text) == (AnswerStatus.DONE, "One and two.")
        assert [expected for message in found if expected and expected in message] == ([expected] if expected else [])
        assert bool(found) == bool(expected)


async def test_each_round_is_reviewed_until_nothing_is_missing(tmp_path: Path) -> None:
    again = verdict("more", task("since", "why"))
    async with thinking(tmp_path, PLAN, MORE, again, verdict("finish"), COMPOSED, rounds=4) as (muster, server):
        request, answer = await asked(muster, server)

        assert [grown.cause for grown in await growths(muster, request)] == ["review:1", "review:2", "review:3"]
        assert len(answer.growth) == 2
        assert muster.executions(request) == {"one": 1, "two": 1, "why": 1, "since": 1}


async def test_a_cancel_ends_a_review_that_hangs(tmp_path: Path) -> None:
    held = CannedReply(MORE.body, is_held=True)
    async with thinking(tmp_path, PLAN, held, COMPOSED) as (muster, server):
        await muster.start("supervisor", "s1", env=server.environment)
        request = await muster.client.submit(ASKED, budget={"tokens": 100_000})
        await muster.until(lambda: len(server.requests) == 2, "the supervisor reviews")

        await muster.client.cancel(request)
        answer = await muster.answer(request)

        (ended,) = await growths(muster, request)
        assert ended.refused is not None
        assert ended.refused.error_class == "cancelled"
        assert answer.usage.tokens == 1200 + ended.usage.tokens > 1200, "what nobody waits for any more is paid"

        assert (answer.status, muster.executions(request)) == (AnswerStatus.CANCELLED, {"one": 1, "two": 1})


async def test_the_trace_shows_the_review_with_its_call_of_the_model(tmp_path: Path, collector: Collector) -> None:
    async with thinking(tmp_path, PLAN, MORE, COMPOSED) as (muster, server):
        await muster.start("supervisor", "s1", env={**server.environment, **collector.environment})
        answer = await muster.answer(await muster.client.submit(ASKED))
        tree = await tree_of(collector, answer.trace_id or "", has(compose=1))

    (grown,) = tree.named("grow")
    assert tree.path(grown) == "invoke_workflow default > grow review"
    assert tree.paths()["invoke_workflow default > grow review > chat claude-sonnet-5-5"] == 1
