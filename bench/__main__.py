"""`python -m bench`: measure, show, and exit with 1 when a number does not hold."""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from bench import growth, isolated, leases, report, rest, speed, takeover
from bench.floor import Floor
from bench.muster import Muster
from bench.row import Row
from bench.sink import Sink
from muster_bus.broker.embedded import Server
from muster_testing.broker import running_broker

GROUPS = ("help", "demo", "memory", "fanout", "traced", "latency", "size", "open", "leases", "takeover", "isolated")
SAMPLED = 0.01  # one trace of a hundred, in every row but that in which all are exported
WARM_UP_TASKS = 500
QUICK = 0.2


def main() -> int:
    given = _arguments()
    began = time.monotonic()
    rows = asyncio.run(_measure(given.only, QUICK if given.quick else 1.0))
    seconds = time.monotonic() - began
    if given.json:
        print(report.as_json(rows, seconds))
    else:
        report.table(rows, seconds)
    return 0 if all(row.is_met for row in rows) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Muster beside plain nats-py, as ratios.")
    parser.add_argument("--only", type=_groups, default=GROUPS, metavar="A,B", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--quick", action="store_true", help="a fifth of the tasks; rougher numbers")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser.parse_args()


def _groups(text: str) -> tuple[str, ...]:
    chosen = tuple(word.strip() for word in text.split(","))
    for word in chosen:
        if word not in GROUPS:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(GROUPS)}")
    return chosen


async def _measure(only: tuple[str, ...], share: float) -> list[Row]:
    rows: list[Row] = []
    if "help" in only:
        rows += await rest.first_words()
    if "demo" in only:
        rows += await rest.demo()
    if "leases" in only:
        rows += _print_rows(await leases.survived())
    if "isolated" in only:
        rows += _print_rows(await isolated.calls(share))
    if set(only) <= {"help", "demo", "leases", "isolated"}:
        return rows
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name, Sink() as sink:
        async with running_broker(Path(name) / "nats") as server, await Floor.start(server.url) as floor:
            if set(only) - {"traced"}:
                async with await _started(server, Path(name), sink.environment(SAMPLED)) as muster:
                    rows += await _measure_services(muster, floor, only, share)
            if "traced" in only:
                async with await _started(server, Path(name), sink.environment(1.0)) as muster:
                    await _warm_up(muster, floor)
                    rows += _print_rows(await speed.traced_fan_out(muster, floor, sink, share))
    return rows


async def _started(server: Server, folder: Path, environment: dict[str, str]) -> Muster:
    """The services, and the client in this process, with these variables."""
    os.environ.update(environment)
    return await Muster.start(server, folder, environment)


async def _warm_up(muster: Muster, floor: Floor) -> None:
    await floor.gather(WARM_UP_TASKS)
    await muster.run(WARM_UP_TASKS)


async def _measure_services(muster: Muster, floor: Floor, only: tuple[str, ...], share: float) -> list[Row]:
    rows = await rest.memory(muster) if "memory" in only else []
    await _warm_up(muster, floor)
    if "fanout" in only:
        rows += _print_rows(await speed.fan_out(muster, floor, share))
    if "latency" in only:
        rows += _print_rows(await speed.latency(muster, floor, share))
    if "size" in only:
        rows += _print_rows(await growth.size(muster, share))
    if "open" in only:
        rows += _print_rows(await growth.open_requests(muster, share))
    if "takeover" in only:  # last: its supervisor is killed
        rows += _print_rows(await takeover.takeover(muster))
    return rows


def _print_rows(rows: list[Row]) -> list[Row]:
    """Show progress meanwhile: the whole takes minutes."""
    for row in rows:
        print(f"{row.name}: {row.measured} = {row.value:.2f} {row.unit}", file=sys.stderr)
    return rows


if __name__ == "__main__":
    sys.exit(main())
