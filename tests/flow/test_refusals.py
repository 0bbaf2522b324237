"""What a role refuses, another role or another model gets one try at."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from muster_protocol.messages import AnswerStatus, Failure, ResultStatus, Task, Usage
from muster_testing.waiting import until_asked
from tests.flow.in_process import put_result
from tests.harness import Muster, running

ROLES = """\
  - {name: careful, tags: [advice, alone], run: "counsel:careful"}
  - {name: frank, tags: [advice], run: "counsel:frank"}
  - {name: thinker, model: offline, other_model: claude-haiku-4-5}
"""
COUNSEL = """\
from muster_agent.errors import Refused


async def careful(task, ctx):
    raise Refused("I would rather not")


async def frank(task, ctx):
    return "sell"
"""


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    (tmp_path / "counsel.py").write_text(COUNSEL)
    async with running(tmp_path, roles=ROLES) as muster:
        yield muster


async def test_what_one_role_refuses_another_that_matches_does_and_without_one_it_has_failed(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    tasks = [{"id": "both", "tag": "advice", "description": "?"}, {"id": "one", "tag": "alone", "description": "?"}]

    answer = await muster.answer(await muster.submit(tasks))

    both, one = answer.tasks
    assert (both.status, both.role, both.attempts) == ("done", "frank", 2)
    assert (one.status, one.attempts, one.reason) == ("failed", 1, "I would rather not")
    assert (answer.status, answer.usage) == (AnswerStatus.PARTIAL, Usage())


async def test_what_the_model_of_a_role_refuses_its_other_model_gets_one_try_at(muster: Muster):
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "tag": "thinker", "description": "think"}])
    await muster.until_log(request, lambda state: state.in_flight == 1)
    refused = Failure.model_validate({"class": "refusal", "message": "no", "is_final": True})

    await put_result(muster.bus, request, "a", ResultStatus.FAILED, refused)

    given: list[Task] = []

    async def is_given_again() -> bool:
        given[:] = [Task.read(raw.data) for raw in await muster.bus.read("tasks.thinker", from_leader=True)]
        return any(task.attempt == 2 for task in given)

    await until_asked(is_given_again, "the task is dispatched again")
    assert [task.model for task in given if task.attempt == 2] == ["claude-haiku-4-5"]
