"""A large request does not hold up a small one that comes later, also on the same tag."""

import pytest

from muster_protocol.messages import AnswerStatus
from tests.harness import Muster

SMALL = 10
SLOTS = 4


@pytest.mark.parametrize("large", [150, pytest.param(10_000, marks=pytest.mark.sweep)])
async def test_a_small_request_beside_a_large_one_waits_less_than_three_times_its_own_work(
    muster: Muster, large: int
) -> None:
    await muster.start("worker", "w1", "--slots", str(SLOTS))
    await muster.start("supervisor", "s1")
    first = await muster.submit([{"id": f"t{n}", "orders": {"sleep": 0.02}} for n in range(large)])
    await muster.until(lambda: len(muster.traces("over")) > 2 * SLOTS, "the large one runs")

    second = await muster.submit([{"id": f"t{n}", "orders": {"sleep": 0.02}} for n in range(SMALL)])
    answer = await muster.answer(second)
    started = [trace["request"] for trace in muster.traces()]
    await muster.client.cancel(first)

    assert answer.status is AnswerStatus.DONE
    while_it_ran = started[started.index(second) : len(started) - started[::-1].index(second)]
    assert len(while_it_ran) < 3 * SMALL, "of both requests"
