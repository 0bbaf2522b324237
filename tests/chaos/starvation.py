"""Writes down when services waited for a processor: what is late then, another process on the machine has delayed."""

import asyncio
import time
from pathlib import Path

from tests.chaos.ledger import Ledger
from tests.chaos.processes import Processes

STEP_SECONDS = 0.5
STARVED_PART = 0.4  # of a step, waiting for a processor; on an idle machine a service waits for a hundredth
LAG_SECONDS = 0.3  # by which the runner itself comes late: it passes the bytes between services and brokers


async def watch_starvation(processes: Processes, ledger: Ledger) -> None:
    """Ask the system how long the main thread of each service was ready to run, and did not."""
    before: dict[int, int] = {}
    while True:
        began = time.time()
        await asyncio.sleep(STEP_SECONDS)
        ended = time.time()
        going = [service for service in processes.services if service.is_running and not service.is_busy]
        now = {service.pid: waited(service.pid) for service in going}
        most = max((now[pid] - before[pid] for pid in now.keys() & before.keys()), default=0)
        if most / 1e9 > STARVED_PART * (ended - began) or ended - began > STEP_SECONDS + LAG_SECONDS:
            ledger.lags.append((began, ended))
        before = now


def waited(process: int) -> int:
    """Nanoseconds since the process began; none where the system does not say."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
