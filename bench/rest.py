"""What it costs to be there: memory of the services at rest, the first answer of the command line, the demo."""

import asyncio
import subprocess
import sys
import tempfile
import time
from statistics import median

from bench.muster import Muster
from bench.row import Row

REST_SECONDS = 1.0
HELP_RUNS = 5


async def memory(muster: Muster) -> list[Row]:
    """Of services that have just started; tracing is on, which costs some megabytes."""
    await asyncio.sleep(REST_SECONDS)
    sizes = muster.resident_megabytes()
    measured = ", ".join(f"{name} {size:.0f}" for name, size in sizes.items())
    return [Row("resident memory of a service at rest", measured, max(sizes.values()), hold=90, aim=60, unit="MB")]


async def first_words() -> list[Row]:
    """`muster --help`: the best of a few, since the others show what else the machine did."""
    took = [await asyncio.to_thread(_seconds, "--help") for _ in range(HELP_RUNS)]
    measured = f"best of {HELP_RUNS}; median {median(took):.2f} s"
    return [Row("muster --help", measured, min(took), hold=0.3, aim=0.15, unit="s")]


async def demo() -> list[Row]:
    """All of `muster demo`, in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        took = await asyncio.to_thread(_seconds, "demo", folder)
    return [Row("muster demo", "from start to end", took, hold=20, aim=10, unit="s")]


def _seconds(word: str, folder: str | None = None) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "muster_cli", word]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, cwd=folder)
    return time.perf_counter() - began
