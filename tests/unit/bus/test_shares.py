"""Free slots, shared out among consumers: all of them, none twice, and nobody waits for ever."""

from hypothesis import given
from hypothesis import strategies as st

from muster_bus.pull import shares

weights = st.lists(st.sampled_from((1, 4)), min_size=1, max_size=12)


@given(st.integers(0, 50), weights, st.integers(0, 11))
def test_exactly_the_free_slots_are_shared(free: int, weights: list[int], first: int):
    shared = shares(free, weights, first % len(weights))

    assert sum(shared) == free
    assert min(shared) >= 0


@given(st.integers(1, 50), weights, st.integers(0, 11))
def test_who_is_first_gets_a_share_so_everybody_does_in_its_turn(free: int, weights: list[int], first: int):
    first %= len(weights)

    assert shares(free, weights, first)[first] >= 1


@given(st.integers(1, 50), weights, st.integers(0, 11))
def test_nobody_gets_more_than_its_weight_gives_while_somebody_gets_nothing(free: int, weights: list[int], first: int):
    shared = shares(free, weights, first % len(weights))

    if 0 in shared:
        for share, weight in zip(shared, weights, strict=True):
            assert share <= max(1, free * weight // sum(weights))


def test_a_busy_consumer_gets_four_times_the_share_of_an_idle_one():
    assert shares(10, [4, 1], 0) == [8, 2]


def test_a_single_slot_goes_round():
    assert [shares(1, [4, 1, 1], first) for first in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
