"""Free slots are shared among consumers: all of them, none twice, and each consumer gets one in time."""

from hypothesis import given
from hypothesis import strategies as st

from muster_bus.slot_shares import shares

weights = st.lists(st.sampled_from((1, 4)), min_size=1, max_size=12)


@given(st.integers(0, 50), weights, st.integers(0, 11))
def test_exactly_the_free_slots_are_shared(free: int, weights: list[int], first: int):
    shared = shares(free, weights, first % len(weights))

    assert sum(shared) == free
    assert min(shared) >= 0


@given(st.integers(1, 50), weights, st.integers(0, 11))
def test_the_first_consumer_gets_a_share_so_each_one_does_in_its_turn(free: int, weights: list[int], first: int):
    first %= len(weights)

    assert shares(free, weights, first)[first] >= 1


@given(st.integers(1, 50), weights, st.integers(0, 11))
def test_no_consumer_gets_more_than_its_weight_while_another_gets_nothing(free: int, weights: list[int], first: int):
    shared = shares(free, weights, first % len(weights))

    if 0 in shared:
        for share, weight in zip(shared, weights, strict=True):
            assert share <= max(1, free * weight // sum(weights))


def test_a_busy_consumer_gets_four_times_the_share_of_an_idle_one():
    assert shares(10, [4, 1], 0) == [8, 2]


def test_a_single_slot_goes_round():
    assert [shares(1, [4, 1, 1], first) for first in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
