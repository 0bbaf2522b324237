"""Broker time: never behind what the broker has shown, and not led astray for ever."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_bus import clock
from muster_bus.clock import BrokerClock

CLOSE = 5.0  # seconds that a slow machine may take between two lines


def test_without_any_message_it_is_local_time():
    assert BrokerClock().now() == pytest.approx(time.time(), abs=CLOSE)


@given(st.lists(st.floats(-1_000, 1_000), min_size=1, max_size=8))
def test_the_largest_lead_seen_is_the_offset(leads: list[float]):
    broker = BrokerClock()

    for lead in leads:
        broker.observe(time.time() + lead)

    assert broker.now() == pytest.approx(time.time() + max(leads), abs=CLOSE)


def test_a_lead_is_forgotten_after_two_windows(monkeypatch: pytest.MonkeyPatch):
    broker = BrokerClock()
    monkeypatch.setattr(clock, "WINDOW_SECONDS", -1.0)  # every message opens a new window
    broker.observe(time.time() + 100)
    broker.observe(time.time() + 10)
    assert broker.now() == pytest.approx(time.time() + 100, abs=CLOSE)

    broker.observe(time.time() + 10)

    assert broker.now() == pytest.approx(time.time() + 10, abs=CLOSE)
