"""A task may name the worker that is to do it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from muster_protocol.messages import AnswerStatus
from tests.harness import Muster, running


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path, roles="workers: [alice, bob]\n") as muster:
        yield muster


async def test_tasks_go_to_the_workers_that_they_name_and_an_unknown_name_is_refused_with_the_names_there_are(
    muster: Muster,
):
    await muster.start("supervisor", "s1")
    for name in ("alice", "bob", "w3"):
        await muster.start("worker", name)
    by_name = {f"{name}-{n}": name for name in ("alice", "bob") for n in range(3)}
    tasks = [
        {"id": task, "worker": name, "tag": None if task.endswith("0") else "scripted"}
        for task, name in by_name.items()
    ]

    request = await muster.submit(tasks)
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert {result.task_id: result.worker for result in await muster.results(request)} == by_name
    assert {result.role for result in await muster.results(request)} == {"scripted"}

    refused = await muster.answer(await muster.submit([{"id": "a", "worker": "carol"}]))
    assert refused.status is AnswerStatus.FAILED
    assert "no worker 'carol'; known: alice, bob" in refused.text
