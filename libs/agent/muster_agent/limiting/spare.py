"""Starts that a process was granted in advance, so that each call need not ask the broker while the limits are wide."""

from collections import deque

from muster_agent.limiting.waiter import Permit
from muster_protocol.workers.rate_limits import Change, Limits

MOST = 32


class Spare:
    """Some starts, all until the same moment."""

    def __init__(self) -> None:
        self._count, self._permit = 0, Permit()
        self._starts: deque[float] = deque(maxlen=MOST)  # the last ones of this process

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def start_by(self) -> float:
        return self._permit.start_by

    def take(self, now: float) -> Permit | None:
        if self._count == 0 or now > self.start_by:
            return None
        self._count -= 1
        self.note_start(now)
        return self._permit

    def note_start(self, now: float) -> None:
        self._starts.append(now)

    def wanted(self, limits: Limits, now: float) -> int:
        """As many as this process has started in the last moment, where the limit is wide."""
        if limits.requests is None or limits.tokens is not None or limits.concurrent is not None:
            return 0
        recent = sum(at > now - limits.leeway for at in self._starts)
        return min(MOST, limits.requests // 60, recent)

    def replaced(self, count: int, permit: Permit) -> list[Change]:
        """Hold these instead; returns what gives the former ones back."""
        back = [Change(self._permit.cell_end, -self._count)] if self._count else []
        self._count, self._permit = count, permit
        return back
