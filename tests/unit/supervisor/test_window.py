"""How many tasks of one request may wait at the workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.workers.card import WorkerCard
from muster_supervisor.choosing.window import LEAST, MOST_AHEAD, Windows, window
from muster_supervisor.decide import Allowance, DispatchTasks, due
from tests.guards import guards
from tests.unit.protocol.log_builder import START, planned, task

CARDS = st.lists(
    st.builds(WorkerCard, name=st.text(max_size=2), tags=st.tuples(st.sampled_from("abc")), slots=st.integers(1, 200)),
    max_size=9,
)


@given(CARDS, st.frozensets(st.sampled_from("abc")), st.none() | st.floats(0, 1e9))
def test_a_window_is_open_enough_for_every_slot_and_bounded(
    cards: list[WorkerCard], tags: frozenset[str], seconds: float | None
):
    slots = sum(card.slots for card in cards if tags & set(card.tags))
    found = window(cards, tags, seconds)

    assert (found is None) == (slots == 0)
    assert found is None or slots <= found <= max(LEAST, (1 + MOST_AHEAD) * slots)


@pytest.mark.parametrize(
    ("seconds", "size"), [(None, 20), (60.0, 20), (0.05, 20), (0.01, 32), (0.001, 176), (0.0, 336)]
)
def test_quick_tasks_have_more_ahead_because_their_results_are_on_the_way_for_longer_than_they_take(
    seconds: float | None, size: int
):
    assert window([WorkerCard(name="w1", tags=("a",), slots=16)], frozenset("a"), seconds) == size


def test_a_new_look_at_the_workers_changes_the_windows():
    windows = Windows()
    assert windows.of(frozenset("a")) is None

    windows.see([WorkerCard(name="w1", tags=("a",), slots=8)])
    assert windows.of(frozenset("a")) == 10

    windows.see([])
    assert windows.of(frozenset("a")) is None


@guards(
    "services/supervisor/muster_supervisor/decide.py",
    "min(plan_entry.in_flight, allowance.window)",
    rule="I4",
    replace="plan_entry.in_flight",
)
def test_no_more_than_the_window_is_dispatched():
    state = planned(*(task(f"t{n}") for n in range(9))).state

    (step,) = due(state, START + 1, Allowance(window=4))

    assert isinstance(step, DispatchTasks)
    assert [attempt.task_id for attempt in step.attempts] == ["t0", "t1", "t2", "t3"]
