"""Who wants to call a model, what it was given, and what it is told while it waits."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster_agent.budget import Meter
from muster_agent.errors import LimitReached, TooLate


class Waiting(NamedTuple):
    """What a call waits for, in words, and about until when (broker time); None: that depends on other calls."""

    what: str
    until: float | None

    def text(self, now: float) -> str:
        about = "" if self.until is None else f", about {max(1.0, self.until - now):.0f} s"
        return f"waits for {self.what}{about}"


def _tell_nobody(_: Waiting | None) -> None:
    """Nobody has to know."""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf models are asked. Times are broker time."""

    ends_at: float = math.inf  # the attempt's own time
    deadline: float = math.inf
    meter: Meter | None = None  # says who is being asked: nobody, as long as the call waits here
    tell: Callable[[Waiting | None], None] = _tell_nobody  # None: it waits no more

    @property
    def gives_up_at(self) -> float:
        return min(self.ends_at, self.deadline)

    def asks(self, provider: str) -> None:
        if self.meter is not None:
            self.meter.asking = provider

    def for_a_call(self, now: float, tell: Callable[[Waiting | None], None]) -> "Caller":
        """The same for one call: it may wait for half of what is left of the attempt's time, or the rest is too short
        for the call itself."""
        return replace(self, ends_at=now + (self.ends_at - now) / 2, tell=tell)

    def too_late(self, what: str, until: float | None, now: float) -> LimitReached | TooLate:
        """The error for a wait that ends after the caller's time."""
        at = self.gives_up_at if until is None else until
        about = "it is not known for how long" if until is None else f"for about {max(0.0, until - now):.0f} s"
        reason = f"the next call would have to wait for {what}, {about}"
        if at >= self.deadline:
            left = max(0.0, self.deadline - now)
            return TooLate(
                f"{reason}, and {left:.0f} s are left until the deadline; give it more time or raise the limit"
            )
        return LimitReached(f"{reason}, which is more than half of what is left of the attempt's time", at)


class Permit(NamedTuple):
    """A call may start until `start_by`; it is counted in a cell."""

    cell_end: float = 0.0
    start_by: float = math.inf
    cost: int = 0


@dataclass(slots=True, eq=False)
class Waiter:
    """A call in the queue."""

    cost: int
    caller: Caller
    done: "asyncio.Future[Permit]"
    told: Waiting | None = None

    def tell(self, waiting: Waiting) -> None:
        self.told = waiting
        self.caller.tell(waiting)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)
