"""Who tries a failed attempt again, and with what: the table of `retry.py`, seen from outside."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from muster_agent.models.port import Ask, RefineBrief, Reply
from muster_agent.models.refined import RefineDraft
from muster_agent.models.scripted import Scripted
from muster_protocol.messages import AnswerStatus, Revision, Usage
from tests.flow.in_process import supervising
from tests.harness import Muster, running
from tests.thinking_role import THINKER

ROLES = (THINKER % "look_up") + '  - {name: caller, run: "calling:call"}\n'
CALLING = """\
import json
from pathlib import Path

async def call(task, ctx):
    with (Path(__file__).parent / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps([task.description, task.inputs, dict(ctx.outputs)]) + "\\n")
    if task.attempt == 1:
        raise ConnectionError("no route")
    return "got it"
"""


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    (tmp_path / "calling.py").write_text(CALLING)
    async with running(tmp_path, roles=ROLES) as muster:
        yield muster


def calls(muster: Muster) -> list[Any]:
    return [json.loads(line) for line in (muster.folder / "calls.jsonl").read_text().splitlines()]


async def test_a_function_that_cannot_reach_something_is_called_again_as_it_was_and_no_model_is_asked(
    muster: Muster,
) -> None:
    await muster.start("worker", "w1")
    model = Scripted([])
    async with supervising(muster, model):
        call = {"id": "b", "tag": "caller", "description": "call", "inputs": {"n": [4, 2]}, "dependencies": ["a"]}
        request = await muster.submit([{"id": "a", "orders": {"output": "first"}}, call])
        answer = await muster.answer(request)

    assert (answer.status, answer.output) == (AnswerStatus.DONE, "got it")
    assert calls(muster) == [["call", {"n": [4, 2]}, {"a": "first"}]] * 2
    assert model.asked == []
    assert answer.usage == Usage()
    assert [row.attempts for row in answer.tasks] == [1, 2]


async def test_a_model_role_that_did_the_wrong_thing_gets_a_description_by_a_model_that_saw_the_error(
    muster: Muster,
) -> None:
    await muster.start("worker", "w1")
    model = Scripted([Reply("please find it", usage=Usage(output_tokens=7, model_calls=1))])
    async with supervising(muster, model):
        answer = await muster.answer(
            request := await muster.submit([{"id": "a", "tag": "thinker", "description": "find it"}])
        )

    assert answer.status is AnswerStatus.DONE
    assert "found by 'please find it'" in answer.text
    (asked,) = model.asked
    assert isinstance(asked.brief, RefineBrief)
    assert asked.brief.description == "find it"
    assert "say please" in asked.brief.error
    revised = [entry.body.description for entry in await muster.log(request) if isinstance(entry.body, Revision)]
    assert (revised, answer.usage.output_tokens) == (["please find it"], 7)


async def test_a_task_that_words_cannot_mend_is_not_tried_again_and_the_answer_says_why(muster: Muster) -> None:
    await muster.start("worker", "w1")
    draft = RefineDraft(can_be_mended=False, description="", reason="Nobody has ever written it down.")
    async with supervising(muster, model := Scripted([Reply(draft.model_dump_json())])):
        task = {"id": "a", "tag": "thinker", "description": "find it", "inputs": {"years": [1, 2]}}
        answer = await muster.answer(await muster.submit([task, {"id": "b", "dependencies": ["a"]}]))

    assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.FAILED, 1)
    reason = answer.tasks[0].reason or ""
    assert reason.startswith("words cannot mend this: Nobody has ever written it down; it failed with: ")
    assert "words cannot mend this" in (answer.tasks[1].reason or "")
    (asked,) = model.asked
    assert isinstance(asked.brief, RefineBrief)
    assert (asked.brief.role and asked.brief.role.name, asked.brief.attempts_left) == ("thinker", 2)


async def test_a_model_role_that_may_not_be_described_anew_is_tried_again_as_it_was(muster: Muster) -> None:
    await muster.start("worker", "w1")
    model = Scripted([])
    retry = {"refine": False, "max_attempts": 2, "backoff_seconds": 0.01}
    async with supervising(muster, model):
        answer = await muster.answer(
            await muster.submit([{"id": "a", "tag": "thinker", "description": "find it", "retry": retry}])
        )

    assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.FAILED, 2)
    assert model.asked == []


@pytest.mark.parametrize("stop", ["end", "length"])
async def test_a_description_that_the_model_did_not_finish_is_not_taken(muster: Muster, stop: Any) -> None:
    def script(_: Ask) -> Reply | Exception:
        half = Reply("please, but only half a descr", stop="length", usage=Usage(output_tokens=7))
        return half if stop == "length" else KeyError("content")

    await muster.start("worker", "w1")
    async with supervising(muster, Scripted(script)):
        request = await muster.submit(
            [{"id": "a", "tag": "thinker", "description": "find it", "retry": {"max_attempts": 2}}]
        )
        answer = await muster.answer(request)

    assert (answer.status, answer.tasks[0].attempts) == (AnswerStatus.FAILED, 2)
    assert (await muster.state(request)).tasks["a"].description == "find it"
    assert answer.usage.output_tokens == (7 if stop == "length" else 0)
