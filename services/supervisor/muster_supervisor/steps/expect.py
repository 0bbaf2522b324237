"""Warns of the limits that a plan will not keep, by what this supervisor has measured of the roles."""

from muster_protocol.messages import PlanRecorded
from muster_supervisor.owner import Owner
from muster_supervisor.planning.estimate import estimate_for, over_limits


def with_expectations(owner: Owner, entry: PlanRecorded) -> PlanRecorded:
    """The entry with these warnings. A plan that was given without a budget is not looked at: it is to cost nothing."""
    if entry.planner == "given" and entry.budget.tokens is None and entry.budget.usd is None:
        return entry
    team, measuring = owner.resources.team, owner.resources.measuring
    measures = {role.name: measuring.of(role.name) for role in team.roles}
    expected = estimate_for(entry.plan, team, measures, entry.in_flight)
    found = tuple(f"plan: {text}" for text in over_limits(expected, entry.budget, owner.seconds_left()))
    return entry.model_copy(update={"warnings": (*entry.warnings, *found)}) if found else entry
