"""How many tasks of a request are out at once: what it asks for, within what its team allows."""

import pytest

from tests.guards import guards
from tests.harness import Muster


@guards(
    "services/supervisor/muster_supervisor/steps/plan.py",
    "in_flight=min(request.in_flight or team.limits.in_flight, team.limits.in_flight),",
    rule="I5",
    replace="in_flight=team.limits.in_flight,",
)
@pytest.mark.parametrize(("asked", "given"), [(1, 1), (1_000, 32)])
async def test_a_request_may_ask_for_fewer_tasks_at_once_than_its_team_allows_and_not_for_more(
    muster: Muster, asked: int, given: int
) -> None:
    await muster.start("supervisor", "s1")

    request = await muster.submit([{"id": "a"}, {"id": "b"}], in_flight=asked)
    await muster.until_log(request, lambda state: state.in_flight > 0)

    state = await muster.state(request)
    assert state.plan_entry is not None
    assert state.plan_entry.in_flight == given
    assert state.in_flight == min(given, 2)
