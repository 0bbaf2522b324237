"""A function role in a process of its own has all that one in the worker has, and none of the worker's secrets."""

from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus, Progress
from tests.flow.isolated_team import apart, does
from tests.guards import guards
from tests.harness import Muster


async def said(muster: Muster, request: str) -> list[str]:
    """What its tasks say of how it goes, in order."""
    events = await muster.bus.read(subjects.events(request), from_leader=True)
    return [Progress.read(raw.data).text for raw in events if raw.headers.get("kind") == Progress.kind]


@guards(
    "services/worker/muster_worker/runners/isolated.py",
    'ctx.spawn(fields.pop("description")',
    rule="I10",
    seconds=40,
)
async def test_it_reads_outputs_says_how_it_goes_adds_tasks_and_prints(tmp_path: Path) -> None:
    async with apart(tmp_path) as muster:
        first = {"id": "first", "orders": {"output": {"apples": 3}}}
        request = await muster.submit([first, {**does("tell all"), "dependencies": ["first"]}])
        answer = await muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        found = {result.task_id: result for result in await muster.results(request)}
        output = found["a"].output
        assert output["outputs"] == {"first": {"apples": 3}}
        assert found[output["added"]].output == "added"
        assert output["variables"] == ["MUSTER_TEST_FOLDER", "SHOP_TOKEN"]
        assert "half way" in await said(muster, request)
        await muster.until_logged("w1", "the token is [redacted SHOP_TOKEN]")
        assert "token-of-the-shop" not in muster.service_log("w1")


@pytest.mark.sweep
async def test_an_async_one_runs_in_an_event_loop_and_is_heard_in_order(tmp_path: Path) -> None:
    async with apart(tmp_path) as muster:
        request = await muster.submit([does("", tag="later")])
        answer = await muster.answer(request)

        assert answer.status is AnswerStatus.DONE
        results = {result.task_id: result.output for result in await muster.results(request)}
        assert results["a"]["thread"] is True
        assert results["added"] == "added"
        assert [text for text in await said(muster, request) if text in ("first", "then")] == ["first", "then"]


@pytest.mark.sweep
@guards(
    "libs/agent/muster_agent/isolation/process.py",
    "self._process.say(Notes(texts=new))",
    rule="I10",
    replace="new = ()",
    seconds=25,
)
async def test_a_note_that_comes_while_it_works_reaches_it(tmp_path: Path) -> None:
    async with apart(tmp_path) as muster:
        request = await muster.submit([does("wait for a note")])
        await muster.until(lambda: len(muster.traces()) == 1, "the function runs")

        await muster.client.note(request, "hurry up")
        answer = await muster.answer(request)

        assert answer.output == ["hurry up"]


@pytest.mark.sweep
async def test_one_that_may_not_add_tasks_fails(tmp_path: Path) -> None:
    async with apart(tmp_path) as muster:
        request = await muster.submit([does("spawn what it may not", tag="alone")])
        await muster.answer(request)

        (result,) = await muster.results(request)
        assert result.error is not None
        assert "may not add tasks; write spawns: true" in result.error.message
        assert result.error.is_final
