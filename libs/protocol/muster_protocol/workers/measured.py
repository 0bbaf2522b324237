"""What is known of a role's work: how often it succeeded, how long it took and what it cost. Pure.

The past fades in two ways, so that a role that recovers comes back: all tries together weigh no more than MEMORY of
them, and half of their weight is gone after HALF_LIFE_SECONDS in which nothing was added.
"""

from typing import Self

from pydantic import Field

from muster_protocol.messages.base import MOST
from muster_protocol.messages.result import ErrorClass, Result
from muster_protocol.plan import Frozen
from muster_protocol.status_words import ResultStatus

MEMORY = 30.0  # tries: enough to tell 50 % from 90 %, few enough to see within a score of tries that this has changed
HALF_LIFE_SECONDS = 900.0  # a provider's outage is over by then, most often
NOT_ITS_FAULT: frozenset[ErrorClass] = frozenset({"input", "budget", "cancelled", "expired"})


class Measured(Frozen):
    """Sums over the tries of a role, the older ones with less weight."""

    tries: float = Field(default=0.0, ge=0, le=MOST)
    successes: float = Field(default=0.0, ge=0, le=MOST)
    seconds: float = Field(default=0.0, ge=0, le=MOST)
    input_tokens: float = Field(default=0.0, ge=0, le=MOST)
    output_tokens: float = Field(default=0.0, ge=0, le=MOST)
    usd: float = Field(default=0.0, ge=0, le=MOST)
    at: float = Field(default=0.0, ge=0, le=MOST)  # broker time of the newest try

    @classmethod
    def of(cls, result: Result, at: float) -> Self:
        """One try."""
        return cls(
            tries=1,
            successes=float(result.status is ResultStatus.DONE),
            seconds=result.seconds,
            input_tokens=result.usage.input_tokens,
            output_tokens=result.usage.output_tokens,
            usd=result.usage.usd,
            at=at,
        )

    @property
    def success_rate(self) -> float | None:
        """The part of the tries that succeeded; None: there are none."""
        return self.successes / self.tries if self.tries else None

    @property
    def mean_seconds(self) -> float | None:
        return self.seconds / self.tries if self.tries else None

    @property
    def mean_tokens(self) -> float | None:
        return (self.input_tokens + self.output_tokens) / self.tries if self.tries else None

    @property
    def mean_usd(self) -> float | None:
        return self.usd / self.tries if self.tries else None

    def plus(self, newer: Self) -> Self:
        """Both together. What is newer keeps its weight while it fits into the memory."""
        if not newer.tries:
            return self
        old, new = self.faded(newer.at), newer._weighing(MEMORY)
        kept = old._weighing(MEMORY - new.tries)
        sums = {name: min(MOST, getattr(kept, name) + getattr(new, name)) for name in _SUMS}
        return self.model_copy(update={**sums, "at": max(self.at, newer.at)})

    def faded(self, now: float) -> Self:
        """The same with the weight that is left of it at this time."""
        quiet = now - self.at
        return self._times(0.5 ** (quiet / HALF_LIFE_SECONDS)) if quiet > 0 and self.tries else self

    def _weighing(self, most: float) -> Self:
        most = max(0.0, most)
        return self if self.tries <= most else self._times(most / self.tries)

    def _times(self, factor: float) -> Self:
        return self.model_copy(update={name: getattr(self, name) * factor for name in _SUMS})


_SUMS = tuple(name for name in Measured.model_fields if name != "at")


def is_measured(result: Result) -> bool:
    """Whether it says something about its role: what was asked wrongly, or stopped by others, does not."""
    if result.status is ResultStatus.CANCELLED:
        return False
    if result.error is not None and result.error.limited_until is not None:
        return False
    return result.error is None or result.error.error_class not in NOT_ITS_FAULT
