"""Provisions a broker for a team with the leases of its file: the same for `muster up` and `muster provision`."""

from muster_agent.team.schema import Team
from muster_bus.broker import topology
from muster_bus.connection import Bus


async def provision_team(bus: Bus, team: Team, replicas: int = 1, give_up_after: float = 0.0) -> None:
    """Make what is missing, and give the team's consumers its leases."""
    settings = topology.Provisioning(
        replicas=replicas,
        lease_seconds=team.limits.request_lease_seconds,
        ack_wait_seconds=team.limits.task_lease_seconds,
        has_lanes=team.priorities is not None,
    )
    await topology.provision(bus, settings, [team.team], team.tags, give_up_after)
