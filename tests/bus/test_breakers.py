"""The breakers of roles, in the bucket that the supervisors of a team share."""

import asyncio
import time
from pathlib import Path

from muster_agent.team.file import load_team
from muster_agent.team.schema import Team
from muster_bus.buckets.breakers import add_events, read_breakers, shown_breakers
from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Bus
from muster_protocol.messages import Failure, Result, ResultStatus
from muster_protocol.workers.breaker import THRESHOLD, Breaker, BreakerEvent
from muster_supervisor.choosing.breaking import Breakers
from muster_testing.waiting import until_asked
from tests.guards import guards

AT = 1_700_000_000.0
TEAM = """\
team: default
roles:
  - {name: fetch, run: "roles:fetch"}
"""
REFUSED = Failure(error_class="network", message="connection refused")
FAILED = Result(
    request_id="r1", task_id="t1", attempt=1, status=ResultStatus.FAILED, error=REFUSED, worker="w1", role="fetch"
)


DONE = FAILED.model_copy(update={"status": ResultStatus.DONE, "error": None})
ROUNDS = 3  # a busy machine delays one or the other


async def test_what_several_see_at_once_is_all_there(bus: Bus, other: Bus):
    seen = [BreakerEvent("failed", AT)] * 2
    await asyncio.gather(*(add_events(one, "default", "fetch", seen) for one in (bus, other) for _ in range(3)))

    (shown,) = await shown_breakers(bus, AT + 4)

    assert (shown["role"], shown["state"], shown["next_try_in_seconds"]) == ("default.fetch", "open", 6.0)


async def test_a_value_that_cannot_be_read_is_closed_and_written_over(bus: Bus):
    await Bucket(bus, "breakers").put("default.fetch", b'{"openings": "many"}')

    assert await read_breakers(bus, "default") == {"fetch": Breaker()}
    assert await add_events(bus, "default", "fetch", [BreakerEvent("failed", AT)]) == Breaker(failures=(AT,))


@guards(
    "services/supervisor/muster_supervisor/choosing/breaking.py",
    "READ_SECONDS = 0.5",
    rule="I4",
    replace="READ_SECONDS = 3.0",
    seconds=40,
)
async def test_what_two_supervisors_see_opens_it_for_both_within_a_second_and_an_answer_closes_it(
    bus: Bus, other: Bus, tmp_path: Path
):
    (tmp_path / "team.yaml").write_text(TEAM)
    team = load_team(tmp_path / "team.yaml")
    first, second = started(bus, team), started(other, team)
    opening, closing = list[float](), list[float]()
    for _ in range(ROUNDS):
        now = bus.clock.now()
        for one in (first, second):
            for _ in range(THRESHOLD // 2):
                one.observe(FAILED, now, by_owner=False)
        assert (first.are_closed, second.are_closed) == (True, True)
        opening.append(await seconds_until_agreed(first, second, is_closed=False))
        first.observe(DONE, now + 1, by_owner=False)
        closing.append(await seconds_until_agreed(first, second, is_closed=True))
    first.stop()
    second.stop()

    assert min(opening) < 1.0, opening
    assert min(closing) < 1.0, closing


async def seconds_until_agreed(first: Breakers, second: Breakers, *, is_closed: bool) -> float:
    async def agreed() -> bool:
        return {one.of("fetch").is_closed for one in (first, second)} == {is_closed}

    began = time.monotonic()
    await until_asked(agreed, f"both say {is_closed=}")
    return time.monotonic() - began


def started(bus: Bus, team: Team) -> Breakers:
    breakers = Breakers(bus, team)
    breakers.start(lambda: True, lambda: None)
    return breakers
