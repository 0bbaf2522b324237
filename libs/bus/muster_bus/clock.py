"""Broker time: the monotonic clock corrected by the broker's own timestamps; setting a clock changes nothing."""

import time

WINDOW_SECONDS = 60.0  # an offset is forgotten after two windows, so that a drifting clock is followed


class BrokerClock:
    """Every stored message shows a moment that has passed at the broker, so the largest lead seen is the offset."""

    def __init__(self) -> None:
        self._current: float | None = None
        self._previous: float | None = None
        self._lead: float | None = None  # the larger of the two
        self._window_began_at = time.monotonic()

    def observe(self, broker_time: float) -> None:
        now = time.monotonic()
        lead = broker_time - now
        if now - self._window_began_at > WINDOW_SECONDS:
            self._previous, self._current, self._window_began_at = self._current, None, now
        if self._current is None or lead > self._current:
            self._current = lead
            self._lead = lead if self._previous is None else max(lead, self._previous)

    def now(self) -> float:
        return time.time() if self._lead is None else time.monotonic() + self._lead
