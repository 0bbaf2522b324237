"""Supervisors that die in turn of one request."""

from muster_supervisor.poison import MAX_LONE_TAKES
from tests.harness import Muster

TAKES = 2 + MAX_LONE_TAKES  # in vain, before a request that nobody has taken is given up


async def die_in_turn(muster: Muster, step: str, takes: int = TAKES) -> None:
    """Supervisors that all wait for the same request, each of which ends at this step of it."""
    names = [f"dying-{number}" for number in range(takes)]
    for name in names:
        muster.spawn("supervisor", name, die_at=step)
    for name in names:
        assert await muster.ended(name) == 137
