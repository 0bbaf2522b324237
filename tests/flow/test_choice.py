"""Of several roles that match, the one that does better gets more: chosen, written down and dispatched by the owner."""

from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from muster_protocol.fold import RequestState
from muster_protocol.messages import Reserved
from tests.harness import Muster, running

ROLES = """\
  - {name: good, tags: [work], run: "workshop:good"}
  - {name: bad, tags: [work], run: "workshop:bad"}
"""
WORKSHOP = """\
import hashlib


async def good(task, ctx):
    return fails_in(task, 10)


async def bad(task, ctx):
    return fails_in(task, 50)


def fails_in(task, percent):
    if hashlib.sha256(task.task_id.encode()).digest()[0] % 100 < percent:
        raise RuntimeError("it broke")
    return "done"
"""


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    (tmp_path / "workshop.py").write_text(WORKSHOP)
    async with running(tmp_path, roles=ROLES) as muster:
        yield muster


async def test_the_better_of_two_roles_gets_most_tasks_and_who_takes_over_keeps_to_what_was_chosen(muster: Muster):
    await muster.start("worker", "w1")
    muster.spawn("supervisor", "s1", die_at="after:reserved")
    over = {"template": {"description": "do {item}", "tag": "work", "max_attempts": 1}, "items": list(range(150))}
    request = await muster.client.submit(map=over, in_flight=4, id="choice")
    await muster.ended("s1")
    await muster.start("supervisor", "s2")

    await muster.answer(request)

    state = await muster.state(request)
    assert shares(state, 50)["good"] >= 80, shares(state, 50)
    assert shares(state, 50)["bad"] >= 5, shares(state, 50)
    first, *_ = [entry.body for entry in await muster.entries(request, Reserved) if isinstance(entry.body, Reserved)]
    assert (first.attempts[0].role, first.attempts[0].why) == ("good", "its turn, nothing is known yet")
    chosen = {(task.spec.id, attempt.role) for task in state.tasks.values() for attempt in task.attempts}
    assert chosen == {(result.task_id, result.role) for result in await muster.results(request)}


def shares(state: RequestState, after: int) -> Counter[str | None]:
    """How many tasks each role got, without the first ones."""
    attempts = sorted((task.attempts[0] for task in state.tasks.values()), key=lambda one: one.reserved_sequence)
    return Counter(attempt.role for attempt in attempts[after:])
