"""How many tasks of one request may wait at the workers."""

from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.workers.card import WorkerCard
from muster_supervisor.choosing.window import LEAST, Windows, window
from muster_supervisor.decide import Allowance, DispatchTasks, due
from tests.guards import guards
from tests.unit.protocol.log_builder import START, planned, task

CARDS = st.lists(
    st.builds(WorkerCard, name=st.text(max_size=2), tags=st.tuples(st.sampled_from("abc")), slots=st.integers(1, 200)),
    max_size=9,
)


@given(CARDS, st.frozensets(st.sampled_from("abc")))
def test_a_window_is_open_enough_for_every_slot_and_no_more_than_twice_that(
    cards: list[WorkerCard], tags: frozenset[str]
):
    slots = sum(card.slots for card in cards if tags & set(card.tags))
    found = window(cards, tags)

    assert (found is None) == (slots == 0)
    assert found is None or slots <= found <= max(LEAST, 2 * slots)


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
