"""How fast: fan-out, and a small request from submit to answer. Floor and Muster take turns: machines are noisy."""

import asyncio
from collections import Counter
from statistics import median, quantiles

from bench.floor import Floor
from bench.muster import WORKERS, Muster
from bench.row import Row
from bench.sink import Sink

FAN_OUT_TASKS = 5_000
FAN_OUT_ROUNDS = 5
LATENCY_TASKS = 10
LATENCY_ROUNDS = 300
EXPORT_SECONDS = 2.5  # until the last batch of a round has left, and the next round does not pay for it
SETTLE_SECONDS = 0.3  # what the services still do after the answer counts as theirs


async def fan_out(muster: Muster, floor: Floor, share: float) -> list[Row]:
    """One request of many no-op tasks; and what the coordinator spends on watching it."""
    count = int(FAN_OUT_TASKS * share)
    floor_rates: list[float] = []
    rates: list[float] = []
    used: Counter[str] = Counter()
    for _ in range(FAN_OUT_ROUNDS):
        floor_rates.append(count / await floor.gather(count))
        before = muster.cpu_seconds()
        rates.append(count / await muster.run(count))
        await asyncio.sleep(SETTLE_SECONDS)
        used.update({name: seconds - before[name] for name, seconds in muster.cpu_seconds().items()})
    tasks = count * FAN_OUT_ROUNDS
    micros = {name: seconds / tasks * 1e6 for name, seconds in used.items()}
    of_workers = sum(micros[name] for name in WORKERS)
    rate, floor_rate = median(rates), median(floor_rates)
    cost = ", ".join(f"{name} {micros[name]:.0f}" for name in ("supervisor", "coordinator", "broker"))
    return [
        Row(
            f"fan-out of {count:,} no-op tasks against the floor",
            f"{rate:,.0f} of {floor_rate:,.0f} tasks/s; CPU µs per task: {cost}, workers {of_workers:.0f}",
            rate / floor_rate,
            hold=0.5,
            aim=0.8,
            is_at_least=True,
        ),
        Row(
            "coordinator's CPU per task against a worker's",
            f"{micros['coordinator']:.0f} against {of_workers:.0f} µs",
            micros["coordinator"] / of_workers,
            hold=0.5,
            aim=0.2,
        ),
    ]


async def traced_fan_out(muster: Muster, floor: Floor, sink: Sink, share: float) -> list[Row]:
    """The same request with every span recorded and exported; what is not exported by then counts as lost."""
    count = int(FAN_OUT_TASKS * share)
    floor_rates: list[float] = []
    rates: list[float] = []
    before = sink.spans
    for _ in range(FAN_OUT_ROUNDS):
        floor_rates.append(count / await floor.gather(count))
        rates.append(count / await muster.run(count))
        await asyncio.sleep(EXPORT_SECONDS)
    rate, floor_rate = median(rates), median(floor_rates)
    exported = (sink.spans - before) / (count * FAN_OUT_ROUNDS)
    return [
        Row(
            f"fan-out of {count:,} no-op tasks with every span exported, against the floor",
            f"{rate:,.0f} of {floor_rate:,.0f} tasks/s; {exported:.2f} spans per task",
            rate / floor_rate if exported >= 1 else 0.0,
            hold=0.25,
            aim=0.5,
            is_at_least=True,
        )
    ]


async def latency(muster: Muster, floor: Floor, share: float) -> list[Row]:
    """A request of ten no-op tasks, one at a time."""
    floor_took: list[float] = []
    took: list[float] = []
    for _ in range(max(100, int(LATENCY_ROUNDS * share))):
        floor_took.append(await floor.gather(LATENCY_TASKS) * 1e3)
        took.append(await muster.run(LATENCY_TASKS) * 1e3)
    middle, floor_middle = median(took), median(floor_took)
    last = quantiles(took, n=100)[98]
    return [
        Row(
            "request of 10 no-op tasks, p50, against the floor's gather of 10",
            f"{middle:.1f} against {floor_middle:.1f} ms",
            middle / floor_middle,
            hold=5,
            aim=3,
        ),
        Row(
            "the same, p99 against its own p50",
            f"{last:.1f} against {middle:.1f} ms",
            last / middle,
            hold=5,
            aim=3,
        ),
    ]
