"""Whether the right side of a conflict was told to stop: of two that live exactly one, and never the only one. Pure.

Who lived at which moment is known from what the role wrote down, who was told to stop from the orders in CONTROL.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from tests.chaos.doubles import CLOCK_SECONDS, Execution, Key, beside, executions, is_after_end, results_of
from tests.chaos.evidence import Evidence, Stop
from tests.chaos.ledger import Ledger

LIVED_SECONDS = 3.0  # before an order: a coordinator takes signs of life of the last two seconds for life
STOPPED_SECONDS = 2.5  # from the evidence to the end of one side: a second is the aim, the machine is busy


def wrong_stops(evidence: Evidence, ledger: Ledger) -> Iterator[tuple[Key, str]]:
    """Orders to stop with which nobody, or nobody that is known, was left."""
    by_key: dict[Key, dict[tuple[str, int, int], Stop]] = defaultdict(dict)
    for stop in sorted(evidence.stops, key=lambda stop: stop.at):
        by_key[stop.key].setdefault((stop.worker, stop.delivery, stop.message), stop)  # an order is repeated
    runs = executions(evidence, ledger)
    for key, stops in by_key.items():
        told: list[Execution] = []
        for stop in stops.values():
            stopped = _run_of(stop, runs.get(key, []), ledger)
            if stopped is None:
                continue  # it ended at that moment, or never began
            told.append(stopped)
            others = [run for run in runs[key] if run not in told]
            if not _is_right(stop, stopped, others, evidence):
                yield key, f"{stop.worker} (message {stop.message}) was told to stop, and no other side lived"


def not_stopped(evidence: Evidence, ledger: Ledger) -> Iterator[tuple[Key, str]]:
    """Attempts of which two sides ran on beside each other, in sight, and none was told to stop."""
    told = {stop.key for stop in evidence.stops}
    for key, runs in executions(evidence, ledger).items():
        longest = max((beside(one, other, ledger) for one, other in combinations(runs, 2)), default=0.0)
        if key not in told and longest > STOPPED_SECONDS:
            yield key, f"ran twice beside each other for {longest:.2f} s, and nobody was told to stop"


def _run_of(stop: Stop, runs: list[Execution], ledger: Ledger) -> Execution | None:
    """The execution that was meant: of that worker, going on at that moment."""
    own = [run for run in runs if ledger.names.get(run.process) == stop.worker]
    going_on = [run for run in own if run.began <= stop.at + CLOCK_SECONDS and run.ended > stop.at - CLOCK_SECONDS]
    return max(going_on, key=lambda run: run.began, default=None)


def _is_right(stop: Stop, stopped: Execution, others: list[Execution], evidence: Evidence) -> bool:
    request_id, task, attempt = stop.key
    log = evidence.logs.get(request_id)
    if is_after_end(log, task, stopped, stop.worker):
        return True
    if any(at <= stop.at + CLOCK_SECONDS for at, _ in results_of(log, task, attempt)):
        return True
    since, until = stop.at - LIVED_SECONDS, stop.at + CLOCK_SECONDS
    return any(run.began <= until and run.ended >= since for run in others)
