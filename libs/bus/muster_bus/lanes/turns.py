"""Whose turn it is among lanes of different weight, the heaviest first; pure.

Each start sets its lane's next turn one stride later; the heavier a lane, the shorter its stride. The lane with the
earliest turn is next, of several the first. A lane that did not wait has no turns saved for that time, and none that
waits is left out: while all wait, each has as many starts as its weight says, spread evenly.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import lcm


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of some lanes after what has started so far; whole numbers, so that nothing is ever rounded."""

    strides: tuple[int, ...]
    nexts: tuple[int, ...]  # the turn of each lane, if it waited all the time
    now: int = 0  # the turn of what started last

    @classmethod
    def of(cls, weights: Sequence[int]) -> "Turns":
        common = lcm(*weights)
        return cls(tuple(common // weight for weight in weights), (0,) * len(weights))

    def next(self, waiting: Collection[int]) -> int:
        """The lane whose turn it is, of those that wait."""
        return min(waiting, key=lambda lane: (max(self.now, self.nexts[lane]), lane))

    def after(self, lane: int, starts: int = 1) -> "Turns":
        """The turns after so many starts in one lane."""
        if starts < 1:
            return self
        last = max(self.now, self.nexts[lane]) + (starts - 1) * self.strides[lane]
        nexts = (*self.nexts[:lane], last + self.strides[lane], *self.nexts[lane + 1 :])
        return replace(self, nexts=nexts, now=max(self.now, last))

    def shares(self, free: int, waiting: Collection[int]) -> list[int]:
        """How many of the free slots each lane gets: all of them, if any lane waits."""
        shared = [0] * len(self.nexts)
        turns = self
        for _ in range(free if waiting else 0):
            lane = turns.next(waiting)
            shared[lane] += 1
            turns = turns.after(lane)
        return shared
