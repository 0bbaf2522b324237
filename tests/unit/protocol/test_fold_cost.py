"""What the fold costs: the same for each entry, however long the log is."""

import gc
import time

from muster_protocol.fold import Entry, fold
from tests.unit.protocol.log_builder import (
    REQUEST,
    planned,
    reserved,
    result,
    task,
)


def wide(count: int) -> list[Entry]:
    """A taken and planned request of that many tasks, all reserved, then all their results."""
    log = planned(*(task(f"t{n}") for n in range(count)))
    log.own(reserved(*((f"t{n}", 1) for n in range(count))))
    for number in range(count):
        log.work(result(f"t{number}"))
    return log.entries


def cpu_seconds(entries: list[Entry]) -> float:
    """The least of five: what the machine does beside it only adds."""
    times: list[float] = []
    for _ in range(5):
        start = time.thread_time()
        fold(REQUEST, entries)
        times.append(time.thread_time() - start)
    return min(times)


def test_a_result_costs_the_same_in_a_log_of_ten_thousand_as_in_one_of_a_hundred():
    logs = {count: wide(count) for count in (100, 10_000)}
    assert all(fold(REQUEST, entries).open_tasks == 0 for entries in logs.values())

    gc.disable()  # it looks at everything the tests have made so far
    few, many = (cpu_seconds(entries) / count for count, entries in logs.items())
    gc.enable()

    assert many <= 5 * few  # a look at every task would make it fifty times and more; caches make it nearly twice
