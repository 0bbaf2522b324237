"""What a plan will take follows from what was measured of its roles, and from nothing else."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.messages import Budget
from muster_protocol.plan import Plan, TaskSpec
from muster_protocol.workers.measured import Measured
from muster_supervisor.planning.estimate import Estimate, estimate, over_limits

QUICK = Measured(tries=10, successes=10, seconds=20, input_tokens=900, output_tokens=100, usd=0.1)
SLOW = Measured(tries=4, successes=2, seconds=40, input_tokens=400, output_tokens=0, usd=0.0)  # every second try fails
KNOWN = {"quick": QUICK, "slow": SLOW}


def plan(**tasks: tuple[str, str]) -> Plan:
    """Tasks by id: the tag, and what it depends on, separated by spaces."""
    specs = [
        TaskSpec(id=name, description=f"do {name}", tag=tag, dependencies=tuple(needs.split()))
        for name, (tag, needs) in tasks.items()
    ]
    return Plan(tasks=tuple(specs))


def estimated(given: Plan, measures: Mapping[str, Measured] = KNOWN, in_flight: int = 32) -> Estimate:
    return estimate(given, lambda task: (task.tag or "",), measures, in_flight, 3)


def test_time_is_that_of_the_longest_chain_and_tries_that_fail_are_paid():
    found = estimated(plan(a=("quick", ""), b=("slow", ""), c=("quick", "a b"), d=("quick", "a")))

    assert found.critical_path == ("b", "c")
    assert found.seconds == pytest.approx(17.5 + 2)  # a try of 10 s, half a second one, a quarter a third one
    assert found.sequential_seconds == pytest.approx(2 + 17.5 + 2 + 2)
    assert found.tokens == pytest.approx(3 * 100 + 175)
    assert found.usd == pytest.approx(3 * 0.01)
    assert (found.tasks, found.unknown) == (4, 0)


def test_few_at_once_take_longer_than_the_longest_chain():
    four = plan(a=("quick", ""), b=("quick", ""), c=("quick", ""), d=("quick", ""))

    assert estimated(four).seconds == 2
    assert estimated(four, in_flight=1).seconds == 8


def test_what_nobody_has_measured_is_counted_and_costs_nothing():
    found = estimated(plan(a=("new", ""), b=("new", "a"), c=("quick", "")), {"quick": QUICK, "new": Measured()})

    assert (found.unknown, found.tasks) == (2, 3)
    assert found.tokens == pytest.approx(100)
    assert estimated(plan(a=("new", ""), b=("new", "a"), c=("new", "")), {}).critical_path == ("a", "b")


def test_roles_that_share_a_tag_count_by_their_average():
    found = estimate(plan(a=("any", "")), lambda _: ("quick", "slow", "new"), KNOWN, 1, 3)

    assert found.seconds == pytest.approx((2 + 17.5) / 2)


def test_what_the_plan_will_not_keep_is_said():
    found = estimated(plan(a=("quick", ""), b=("slow", "a")))

    assert over_limits(found, Budget(), 60) == []
    assert over_limits(found, Budget(tokens=200, usd=0.005), 10) == [
        "it will take about 275 tokens; the budget is 200",
        "it will cost about $0.01; the budget is $0.01",
        "it will take about 20 s; the deadline is 10 s",
    ]


@given(
    st.lists(st.tuples(st.sampled_from(["quick", "slow", "new"]), st.sets(st.integers(0, 7))), min_size=1, max_size=8)
)
def test_the_estimate_lies_between_one_task_and_all_of_them_in_a_row(drawn: list[tuple[str, set[int]]]):
    tasks = {f"t{n}": (tag, " ".join(f"t{m}" for m in needs if m < n)) for n, (tag, needs) in enumerate(drawn)}
    given_plan = plan(**tasks)

    found = estimated(given_plan)

    assert found.seconds <= found.sequential_seconds + 1e-9
    needs = {task.id: task.dependencies for task in given_plan.tasks}
    path = found.critical_path
    assert path
    assert needs[path[0]] == ()
    assert all(before in needs[after] for before, after in pairwise(path))
