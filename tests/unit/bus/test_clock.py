"""Broker time follows the largest lead seen in the last two windows."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster_bus.clock import WINDOW_SECONDS, BrokerClock


class LocalClock:
    """A local clock that the test moves."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.set_by = 0.0

    def time(self) -> float:
        return 1000.0 + self.passed + self.set_by

    def monotonic(self) -> float:
        return self.passed


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> LocalClock:
    clock = LocalClock()
    monkeypatch.setattr("muster_bus.clock.time", clock)
    return clock


def test_local_time_is_used_until_a_message_of_the_broker_came(local: LocalClock):
    assert BrokerClock().now() == local.time()


@given(st.lists(st.integers(-1_000, 1_000), min_size=1, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the local clock stands still
def test_the_largest_lead_counts_because_messages_only_arrive_late(local: LocalClock, leads: list[int]):
    clock = BrokerClock()

    for lead in leads:
        clock.observe(local.time() + lead)

    assert clock.now() == local.time() + max(leads)


def test_a_lead_is_kept_for_a_second_window_and_then_forgotten(local: LocalClock):
    clock = BrokerClock()
    clock.observe(local.time() + 5)

    local.passed += WINDOW_SECONDS + 1
    clock.observe(local.time() + 1)
    in_the_second_window = clock.now() - local.time()
    local.passed += WINDOW_SECONDS + 1
    clock.observe(local.time() + 1)
    in_the_third_window = clock.now() - local.time()

    assert (in_the_second_window, in_the_third_window) == (5, 1)


def test_setting_the_local_clock_does_not_move_broker_time(local: LocalClock):
    clock = BrokerClock()
    clock.observe(local.time())
    before = clock.now()

    local.set_by = 3600.0

    assert clock.now() == before
