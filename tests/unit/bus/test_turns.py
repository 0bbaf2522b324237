"""Turns of lanes: all free slots are given out, high comes first, each that waits gets what its weight says."""

from hypothesis import given
from hypothesis import strategies as st

from muster_bus.lanes.turns import Turns

WEIGHTS = st.tuples(st.integers(1, 100), st.integers(1, 100), st.integers(1, 100))
HISTORY = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=40)
WAITING = st.sets(st.integers(0, 2))


def after(turns: Turns, history: list[tuple[int, int]]) -> Turns:
    for lane, starts in history:
        turns = turns.after(lane, starts)
    return turns


def starts(turns: Turns, waiting: set[int], count: int) -> list[int]:
    """Which lanes the next starts are of."""
    found: list[int] = []
    for _ in range(count):
        found.append(turns.next(waiting))
        turns = turns.after(found[-1])
    return found


@given(WEIGHTS, HISTORY, st.integers(0, 60), WAITING)
def test_exactly_the_free_slots_are_shared_among_the_lanes_that_wait(
    weights: tuple[int, int, int], history: list[tuple[int, int]], free: int, waiting: set[int]
):
    shared = after(Turns.of(weights), history).shares(free, waiting)

    assert sum(shared) == (free if waiting else 0)
    assert all(share == 0 for lane, share in enumerate(shared) if lane not in waiting)
    assert min(shared) >= 0


@given(WEIGHTS, HISTORY, WAITING.filter(bool))
def test_no_lane_that_waits_is_left_out(
    weights: tuple[int, int, int], history: list[tuple[int, int]], waiting: set[int]
):
    """Whatever was before: among so many starts as all weights together, and one of each other lane, each has one."""
    turns = after(Turns.of(weights), history)
    longest = max(sum(-(-weights[other] // weights[lane]) + 1 for other in waiting) for lane in waiting)
    begun = set(starts(turns, waiting, longest * 6))

    assert begun == waiting


@given(WEIGHTS, st.integers(1, 20))
def test_while_all_wait_each_starts_as_often_as_its_weight_says(weights: tuple[int, int, int], rounds: int):
    found = starts(Turns.of(weights), {0, 1, 2}, sum(weights) * rounds)

    assert [found.count(lane) for lane in range(3)] == [weight * rounds for weight in weights]


@given(WEIGHTS, st.integers(1, 1000))
def test_a_lane_that_did_not_wait_has_no_turns_saved(weights: tuple[int, int, int], alone: int):
    """High ones that come after a long time of low ones do not make these wait for as long."""
    turns = Turns.of(weights).after(2, alone)

    found = starts(turns, {0, 2}, weights[0] // weights[2] + 3)

    assert found[0] == 0
    assert 2 in found


@given(WEIGHTS, HISTORY, st.integers(0, 2), st.integers(1, 10))
def test_several_starts_are_so_many_times_one(
    weights: tuple[int, int, int], history: list[tuple[int, int]], lane: int, count: int
):
    turns = after(Turns.of(weights), history)

    assert turns.after(lane, count) == after(turns, [(lane, 1)] * count)


def test_four_high_tasks_that_come_while_low_ones_run_are_the_next_four():
    turns = Turns.of([8, 4, 1]).after(2, 50)

    assert turns.shares(4, {0, 2}) == [4, 0, 0]


def test_a_low_one_starts_after_eight_high_ones():
    found = starts(Turns.of([8, 4, 1]).after(2), {0, 2}, 27)

    assert [place for place, lane in enumerate(found) if lane == 2] == [9, 18]
