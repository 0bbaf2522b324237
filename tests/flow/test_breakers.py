"""A role that does not answer gets no attempts for a while; then one decides. Seen by its requests and by people."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from muster_bus.buckets.breakers import read_breakers
from muster_bus.buckets.kv import Bucket
from muster_protocol.fold import TaskPhase
from muster_protocol.messages import AnswerStatus, Reserved
from muster_protocol.workers.breaker import PAUSE_SECONDS, THRESHOLD, Breaker
from muster_testing.waiting import until_asked
from tests.flow.command_line import Here
from tests.harness import Muster, running

ROLES = """\
  - {name: fetch, tags: [page, book], run: "fetching:fetch"}
  - {name: mirror, tags: [book], run: "fetching:mirror"}
"""
FETCHING = """\
from pathlib import Path

async def fetch(task, ctx):
    if not (Path(__file__).parent / "mended").exists():
        raise ConnectionError("no route")
    return "the page"

async def mirror(task, ctx):
    return "a copy"
"""
TASKS = 13


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    (tmp_path / "fetching.py").write_text(FETCHING)
    async with running(tmp_path, roles=ROLES) as muster:
        yield muster


async def test_tasks_wait_for_a_role_that_does_not_answer_until_one_of_them_finds_it_there_again(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    over = {"template": {"description": "get {item}", "tag": "fetch", "max_attempts": 1}, "items": list(range(TASKS))}
    request = await muster.client.submit(map=over, in_flight=1)
    await until_asked(lambda: is_open(muster), "the role got no further attempt")
    state = await muster.state(request)
    waiting = [task_id for task_id, task in state.tasks.items() if task.phase is TaskPhase.READY]
    here = muster.folder / "here"
    here.mkdir()
    there = Here(here, MUSTER_NATS_URL=muster.broker.url)
    (shown,) = (await asyncio.to_thread(there.document, "status"))["breakers"]
    held = await asyncio.to_thread(there.document, "status", request)

    (muster.folder / "mended").touch()
    stored = Breaker(openings=1, opened_at=muster.bus.clock.now() - PAUSE_SECONDS + 1)  # its pause is nearly over
    await Bucket(muster.bus, "breakers").put("default.fetch", stored.model_dump_json().encode())
    answer = await muster.answer(request)

    assert (answer.status, sum(row.status == "done" for row in answer.tasks)) == (AnswerStatus.PARTIAL, len(waiting))
    assert (len(waiting), shown["role"], shown["state"]) == (TASKS - THRESHOLD, "default.fetch", "open")
    reasons = {task["reason"].partition(", the next try")[0] for task in held["tasks"] if task["status"] == "ready"}
    assert reasons == {"held back: role 'fetch' does not answer"}
    assert "held back: role 'fetch' does not answer" in held["reason"]
    reserved = await muster.entries(request, Reserved)
    assert reserved[THRESHOLD].time >= stored.half_open_at
    assert (await read_breakers(muster.bus, "default"))["fetch"].is_closed


@pytest.mark.sweep
async def test_a_role_that_does_not_answer_is_not_chosen_while_another_can_do_the_task(muster: Muster):
    stored = Breaker(openings=4, opened_at=muster.bus.clock.now())
    await Bucket(muster.bus, "breakers").put("default.fetch", stored.model_dump_json().encode())
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    await muster.answer(await muster.submit([{"id": "a"}]))  # by then the breakers are read

    request = await muster.client.submit(map={"template": {"description": "{item}", "tag": "book"}, "items": [1, 2, 3]})

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    attempts = [attempt for task in (await muster.state(request)).tasks.values() for attempt in task.attempts]
    assert [attempt.role for attempt in attempts] == ["mirror"] * 3
    assert all("fetch does not answer" in (attempt.why or "") for attempt in attempts)


async def is_open(muster: Muster) -> bool:
    breaker = (await read_breakers(muster.bus, "default")).get("fetch")
    return breaker is not None and not breaker.is_closed
