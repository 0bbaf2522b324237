"""What the fold costs: the same for each entry, however long the log is."""

import gc
import time
from collections.abc import Callable

import pytest

from muster_protocol.fold import Entry, fold
from tests.unit.protocol.log_builder import (
    REQUEST,
    failure,
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


def gathered(count: int) -> list[Entry]:
    """The same, but every second task fails, and one gathers them all."""
    items = [task(f"t{n}", max_attempts=1).model_copy(update={"item_of": "items"}) for n in range(count - 1)]
    log = planned(*items, task("sum", *(item.id for item in items)))
    log.own(reserved(*((item.id, 1) for item in items)))
    for number, item in enumerate(items):
        log.work(failure(item.id) if number % 2 else result(item.id))
    return log.entries


def cpu_seconds(entries: list[Entry]) -> float:
    """The least of five: what the machine does beside it only adds."""
    times: list[float] = []
    for _ in range(5):
        start = time.thread_time()
        fold(REQUEST, entries)
        times.append(time.thread_time() - start)
    return min(times)


@pytest.mark.parametrize(("log_of", "left"), [(wide, 0), (gathered, 1)])
def test_a_result_costs_the_same_in_a_log_of_ten_thousand_as_in_one_of_a_hundred(
    log_of: Callable[[int], list[Entry]], left: int
):
    logs = {count: log_of(count) for count in (100, 10_000)}
    states = [fold(REQUEST, entries) for entries in logs.values()]
    assert [(state.open_tasks, len(state.ready)) for state in states] == [(left, left)] * 2

    gc.disable()  # it looks at everything the tests have made so far
    few, many = (cpu_seconds(entries) / count for count, entries in logs.items())
    gc.enable()

    assert many <= 5 * few  # a look at every task would make it fifty times and more; caches make it nearly twice
