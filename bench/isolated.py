"""What it costs to call a function in a process of its own, and to start such a process."""

import asyncio
import time
from pathlib import Path
from statistics import median, quantiles

from bench.row import Row
from muster_agent.isolation.environment import own_environment
from muster_agent.isolation.messages import ToolRun
from muster_agent.isolation.pool import Pool
from muster_agent.isolation.process import Kind
from muster_agent.isolation.tool import UNHEARD

CALLS = 1_000
STARTS = 5
RUN = ToolRun(function="noop:nothing", folder=Path(__file__).parent, seconds=10, arguments="{}")


async def calls(share: float) -> list[Row]:
    """One call after the other, of a plain function that does nothing, from this process."""
    pool = Pool(1, own_environment())
    try:
        starts = [await _seconds(pool, f"role-{number}") for number in range(STARTS)]
        took = [await _seconds(pool, f"role-{STARTS - 1}") * 1e3 for _ in range(max(100, int(CALLS * share)))]
    finally:
        await pool.close()
    last = quantiles(took, n=100)[98]
    measured = f"p50 of {len(took):,}; p99 {last:.2f} ms; the first of a process {min(starts) * 1e3:.0f} ms"
    return [Row("isolated call", measured, median(took), hold=2.0, aim=0.5, unit="ms")]


async def _seconds(pool: Pool, role: str) -> float:
    began = time.perf_counter()
    async with asyncio.timeout(RUN.seconds):
        await pool.call(Kind(role, 512), RUN, UNHEARD, RUN.seconds)
    return time.perf_counter() - began
