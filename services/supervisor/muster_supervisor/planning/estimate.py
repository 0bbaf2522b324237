"""What a plan will take, by what was measured of the roles: tokens, money, and the time of its longest path. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from muster_agent.team.schema import Team
from muster_protocol.messages import Budget
from muster_protocol.plan import Plan, TaskSpec, needs_of, ordered
from muster_protocol.subjects import TaskId
from muster_protocol.workers.measured import Measured
from muster_supervisor.planning.routing import matcher

RolesOf = Callable[[TaskSpec], Iterable[str]]  # the names of the roles that may get a task


class Cost(NamedTuple):
    """What one task takes, on average over the roles that may get it and with the tries that fail."""

    seconds: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0


UNKNOWN = Cost()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan will take. Tasks of which nothing is known count as nothing, and are counted."""

    tasks: int
    unknown: int
    tokens: float
    usd: float
    seconds: float  # until the last task is done, with so many at once
    sequential_seconds: float  # one task after the other
    critical_path: tuple[TaskId, ...]  # the chain of tasks that takes longest


def estimate_for(plan: Plan, team: Team, measures: Mapping[str, Measured], in_flight: int) -> Estimate:
    """What a routed plan takes with the roles of its team."""
    matching = matcher(team)

    def roles_of(task: TaskSpec) -> Iterable[str]:
        return task.roles or (role.name for role in matching(task))

    return estimate(plan, roles_of, measures, in_flight, team.limits.max_attempts)


def estimate(
    plan: Plan, roles_of: RolesOf, measures: Mapping[str, Measured], in_flight: int, max_attempts: int
) -> Estimate:
    """What a plan takes whose tasks have one role each: a broadcast is unfolded by then."""
    known: dict[tuple[str, ...], Cost] = {}
    costs: dict[TaskId, Cost] = {}
    for task in plan.tasks:
        roles = tuple(roles_of(task))
        if roles not in known:
            known[roles] = _cost([measures[role] for role in roles if role in measures], max_attempts)
        costs[task.id] = known[roles]
    path, longest = _critical_path(plan, costs)
    sequential = sum(cost.seconds for cost in costs.values())
    return Estimate(
        tasks=len(costs),
        unknown=sum(cost is UNKNOWN for cost in costs.values()),
        tokens=sum(cost.tokens for cost in costs.values()),
        usd=sum(cost.usd for cost in costs.values()),
        seconds=max(longest, sequential / in_flight),
        sequential_seconds=sequential,
        critical_path=path,
    )


def over_limits(estimate: Estimate, budget: Budget, deadline_seconds: float) -> list[str]:
    """What the plan will not keep, in words; empty when it fits as far as anybody knows."""
    found: list[str] = []
    if budget.tokens is not None and estimate.tokens > budget.tokens:
        found.append(f"it will take about {estimate.tokens:,.0f} tokens; the budget is {budget.tokens:,}")
    if budget.usd is not None and estimate.usd > budget.usd:
        found.append(f"it will cost about ${estimate.usd:,.2f}; the budget is ${budget.usd:,.2f}")
    if estimate.seconds > deadline_seconds:
        found.append(f"it will take about {estimate.seconds:,.0f} s; the deadline is {deadline_seconds:,.0f} s")
    return found


def _cost(measured: list[Measured], max_attempts: int) -> Cost:
    costs = [_with_tries(one, max_attempts) for one in measured if one.tries > 0]
    if not costs:
        return UNKNOWN
    return Cost(*(sum(values) / len(costs) for values in zip(*costs, strict=True)))


def _with_tries(measured: Measured, max_attempts: int) -> Cost:
    """A task is tried until it succeeds, but not more often than it may be."""
    fails = 1 - min(1.0, measured.successes / measured.tries)
    tries = sum(fails**number for number in range(max_attempts))
    tokens = measured.input_tokens + measured.output_tokens
    return Cost(*(total / measured.tries * tries for total in (measured.seconds, tokens, measured.usd)))


def _critical_path(plan: Plan, costs: Mapping[TaskId, Cost]) -> tuple[tuple[TaskId, ...], float]:
    """The chain that ends last, and its seconds; among equals the one of the most tasks."""
    needs = needs_of(plan)
    ends: dict[TaskId, tuple[float, int]] = {}
    before: dict[TaskId, TaskId] = {}
    for task_id in ordered(needs):
        latest = max(needs[task_id], key=ends.__getitem__, default=None)
        seconds, count = (0.0, 0) if latest is None else ends[latest]
        ends[task_id] = (seconds + costs[task_id].seconds, count + 1)
        if latest is not None:
            before[task_id] = latest
    at = max(ends, key=ends.__getitem__, default=None)
    longest = 0.0 if at is None else ends[at][0]
    path: list[TaskId] = []
    while at is not None:
        path.append(at)
        at = before.get(at)
    return tuple(reversed(path)), longest
