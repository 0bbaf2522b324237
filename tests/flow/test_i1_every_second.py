"""I1, I2, I3 under load: supervisors die again and again while many requests run."""

import asyncio
import itertools
from typing import Any

import pytest

from muster_protocol import subjects
from muster_protocol.messages import Answer, PlanRecorded
from tests.harness import Muster

KILL_EVERY_SECONDS = 1.0
WITHIN_SECONDS = 300.0
SUPERVISORS = ("s1", "s2", "s3", "s4")


@pytest.mark.timeout(WITHIN_SECONDS + 60)
@pytest.mark.parametrize(
    ("requests", "tasks"), [(10, 20), pytest.param(100, 20, marks=pytest.mark.sweep)], ids=["quick", "whole"]
)
async def test_requests_survive_a_supervisor_killed_every_second(muster: Muster, requests: int, tasks: int) -> None:
    await asyncio.gather(muster.start("worker", "w1"), muster.start("worker", "w2"))
    await asyncio.gather(*(muster.start("supervisor", name) for name in SUPERVISORS))
    asked = [await muster.submit(_two_layers(tasks)) for _ in range(requests)]

    killing = asyncio.create_task(_kill_in_turn(muster))
    answers = await asyncio.gather(*(muster.answer(request, within=WITHIN_SECONDS) for request in asked))
    killing.cancel()

    assert {answer.reason for answer in answers} == {""}
    for request in asked:
        assert set(muster.executions(request).values()) == {1}, request
        assert len(muster.executions(request)) == tasks
        assert len(await muster.entries(request, PlanRecorded)) == 1
        assert len(await muster.entries(request, Answer)) == 1
    await muster.until_settled(subjects.requests("default"))


def _two_layers(tasks: int) -> list[dict[str, Any]]:
    """Half of the tasks wait for one of the other half each."""
    half = tasks // 2
    first = [{"id": f"a{n}", "orders": {"sleep": 0.2}} for n in range(half)]
    return [*first, *({"id": f"b{n}", "dependencies": [f"a{n}"]} for n in range(tasks - half))]


async def _kill_in_turn(muster: Muster) -> None:
    """One supervisor a second. Each starts again at once, and has its next turn when it has become ready."""
    for name in itertools.cycle(SUPERVISORS):
        await asyncio.sleep(KILL_EVERY_SECONDS)  # the fault's own rhythm
        if muster.is_ready(name):
            muster.kill(name)
            muster.spawn("supervisor", name)
