"""What a service's probes say, and what an installation does when they fail: it starts the service again."""

import asyncio
import math
import time
import urllib.error
import urllib.request

from tests.chaos.ledger import Recovery
from tests.chaos.processes import Process, Processes

PROBE_SECONDS = 2.0
AGAIN_SECONDS = 0.2
FAILURES = 10  # of the probe for life, one after the other, before the service is started again
WATCH_SECONDS = 90.0  # longer than until a connection is given up, and the service started again


async def recover(processes: Processes, service: Process, what: str) -> None:
    """After damage to its wires: write down when the service is ready again."""
    ended, failures = time.time(), 0
    while time.time() - ended < WATCH_SECONDS:
        if await _status(service, "readyz") == 200:
            processes.ledger.recoveries.append(Recovery(service.name, what, ended, time.time()))
            return
        is_alive = service.is_busy or await _status(service, "healthz") in (0, 200)
        failures = 0 if is_alive else failures + 1
        if failures >= FAILURES and not service.is_busy:
            failures = 0
            await _restart(processes, service)
        await asyncio.sleep(AGAIN_SECONDS)
    processes.ledger.recoveries.append(Recovery(service.name, what, ended, math.inf))


async def _restart(processes: Processes, service: Process) -> None:
    service.is_busy = True
    began, process = time.time(), service.pid
    processes.ledger.faults.append("restarted by its probe")
    try:
        service.kill()
        await service.start()
    finally:
        service.is_busy = False
    processes.was_away(service.name, began, process, is_death=True)


async def _status(service: Process, path: str) -> int:
    """What the probe says; 0: nobody answers."""
    return await asyncio.to_thread(_get, f"http://127.0.0.1:{service.port}/{path}")


def _get(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PROBE_SECONDS) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
