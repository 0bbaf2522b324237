"""How flat: the cost of one task in a large request, and beside a thousand open requests."""

import asyncio
from dataclasses import dataclass
from statistics import median

from bench.muster import Muster
from bench.row import Row

SMALL, LARGE = 100, 10_000
SMALL_RUNS = 20  # one after the other: together long enough for the kernel's clock of CPU time
PASSES = 3
OPEN = 1_000
BESIDE = 2_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one task, in microseconds: of the clock on the wall, and of all services and the broker on the CPU."""

    wall: float
    cpu: float


async def cost(muster: Muster, count: int, runs: int = 1) -> Cost:
    """The median time of so many requests in succession, and the mean CPU time."""
    before = sum(muster.cpu_seconds().values())
    took = median([await muster.run(count) for _ in range(runs)])
    await asyncio.sleep(0.1)
    used = sum(muster.cpu_seconds().values()) - before
    return Cost(took / count * 1e6, used / count / runs * 1e6)


async def size(muster: Muster, share: float) -> list[Row]:
    """Small and large requests take turns. A small one bears the fixed cost of a request on few tasks."""
    large = max(1_000, int(LARGE * share))
    of_small: list[Cost] = []
    of_large: list[Cost] = []
    for _ in range(PASSES):
        of_small.append(await cost(muster, SMALL, SMALL_RUNS))
        of_large.append(await cost(muster, large))
    return _rows(f"cost per task at {large:,} tasks in one request against {SMALL}", of_large, of_small, 1.25, 1.05)


async def open_requests(muster: Muster, share: float) -> list[Row]:
    """A fan-out alone, then while other requests are open and wait for tasks that a worker holds, then alone again."""
    count = int(OPEN * share)
    beside = max(1_000, int(BESIDE * share))
    await muster.start_holder(count)
    alone = [await cost(muster, beside) for _ in range(2)]
    request_ids = await muster.open_requests(count)
    crowded = [await cost(muster, beside) for _ in range(PASSES)]
    await muster.cancel(request_ids)
    alone.append(await cost(muster, beside))
    return _rows(f"cost per task with {count:,} open requests against 1", crowded, alone, 1.5, 1.1)


def _rows(name: str, costs: list[Cost], against: list[Cost], hold: float, aim: float) -> list[Row]:
    rows: list[Row] = []
    for unit, many, few in (
        ("time", [c.wall for c in costs], [c.wall for c in against]),
        ("CPU", [c.cpu for c in costs], [c.cpu for c in against]),
    ):
        measured = f"{median(many):.0f} against {median(few):.0f} µs"
        rows.append(Row(f"{name}, {unit}", measured, median(many) / median(few), hold, aim))
    return rows
