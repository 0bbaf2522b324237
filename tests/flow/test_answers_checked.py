"""What an answer says about itself: contradictions, sources, its schema; with functions alone, so without any model."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest_asyncio

from muster_protocol.messages import AnswerStatus, Selected
from tests.flow.command_line import Here
from tests.harness import Muster, running

ROLES = """\
  - {name: say, run: "said:say"}
"""
SAID = """\
async def say(task, ctx):
    return task.inputs["words"]
"""


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    (tmp_path / "said.py").write_text(SAID)
    async with running(tmp_path, roles=ROLES) as muster:
        await muster.start("supervisor", "s1")
        await muster.start("worker", "w1")
        yield muster


def saying(aggregation: str = "merge", **words: object) -> dict[str, Any]:
    tasks = [
        {"id": name, "description": "Say it", "tag": "say", "inputs": {"words": each}} for name, each in words.items()
    ]
    return {"tasks": tasks, "aggregation": aggregation}


async def test_results_that_contradict_each_other_are_shown_with_their_sources_by_every_command(
    muster: Muster, tmp_path: Path
):
    books, press = "Revenue in 2023 was $4.2 million.", "Revenue in 2023 was $5.1 million. Source: the press"
    request_id = await muster.client.submit(plan=saying(books=books, press=press))

    answer = await muster.client.answer(request_id, timeout=20)

    said = f"books says “{books}”, press says “Revenue in 2023 was $5.1 million.”"
    found = f"$4.2 million against $5.1 million: {said}"
    assert (answer.status, answer.contradictions) == (AnswerStatus.DONE, (found,))
    assert answer.confidence_parts is not None
    assert (answer.confidence, answer.confidence_parts.agreeing) == (0.0, 0.0)
    assert answer.sources == ("the press",)
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
    for command in ("status", "trace", "wait"):
        ran = await asyncio.to_thread(here.run, command, request_id)
        assert "$4.2 million against $5.1 million" in ran.stdout + ran.stderr, command


async def test_an_answer_fits_its_schema_or_says_what_does_not(muster: Muster):
    schema = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
    fitting = await muster.client.submit(plan=saying(a='{"price": 3}'), answer_schema=schema)
    other = await muster.client.submit(plan=saying(a={"price": "much"}), answer_schema=schema)

    good, bad = await muster.client.answer(fitting, timeout=20), await muster.client.answer(other, timeout=20)

    assert (good.status, good.output) == (AnswerStatus.DONE, {"price": 3})
    assert (bad.status, bad.error_class, bad.output) == (AnswerStatus.PARTIAL, "bad_output", {"price": "much"})
    assert bad.gaps == ("the answer does not fit answer_schema: price: 'much' is not of type 'number'",)


async def test_without_a_model_the_first_final_task_is_selected_and_the_answer_says_so(muster: Muster):
    request_id = await muster.client.submit(plan=saying("select", a="one", b="two"))

    answer = await muster.client.answer(request_id, timeout=20)

    reason = "the first of 2 final tasks that are done, in the order of the plan; nobody judged them"
    assert (answer.output, answer.selected) == ("one", Selected(task_id="a", reason=reason))
