"""When a role, or a provider of models, that does not answer gets no attempts, and when one is tried again. Pure.

That is a circuit breaker.

Closed: it gets attempts. After THRESHOLD failures in a row within WINDOW_SECONDS it is open and gets none, for a pause.
Then it is half-open: one attempt, the probe, decides. Any answer closes it; another failure opens it for a pause twice
as long. What happened is given as events, so that several supervisors can tell what each of them saw.
"""

from enum import StrEnum
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field

from muster_protocol.messages.base import MOST
from muster_protocol.messages.result import ErrorClass, Result
from muster_protocol.plan import Frozen
from muster_protocol.status_words import ResultStatus

THRESHOLD = 10  # failures in a row: more than three strikes of three tasks
WINDOW_SECONDS = 60.0  # in which they must lie
PAUSE_SECONDS = 10.0  # without any attempt; doubles with each probe that fails
MAX_PAUSE_SECONDS = 80.0
PROBE_SECONDS = 30.0  # a probe that has said nothing for so long is not waited for
PROVIDER = "provider:"  # how the key of a provider's breaker begins; no role is called so
AGAINST: frozenset[ErrorClass] = frozenset({"network", "timeout", "resource"})  # retried as they are, without a model
ANSWERED: frozenset[ErrorClass] = frozenset({"logic", "bad_output", "refusal"})  # badly, but it is there


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerEvent(NamedTuple):
    """What was seen of a role or of a provider, in broker time."""

    what: Literal["failed", "answered", "probed"]
    at: float


class Breaker(Frozen):
    """What its events come to."""

    failures: tuple[float, ...] = ()  # when the last ones were, with no answer since; counted while it is closed
    openings: int = Field(default=0, ge=0, le=1_000_000)  # in a row; 0: it is closed
    opened_at: float = Field(default=0.0, ge=0, le=MOST)
    probe_at: float = Field(default=0.0, ge=0, le=MOST)  # 0: no probe is under way

    @property
    def is_closed(self) -> bool:
        return self.openings == 0

    @property
    def half_open_at(self) -> float:
        """When the pause is over."""
        return self.opened_at + min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * 2 ** min(30, max(0, self.openings - 1)))

    @property
    def free_at(self) -> float:
        """From when on it may be given an attempt; 0: now."""
        if self.is_closed:
            return 0.0
        return max(self.half_open_at, self.probe_at + PROBE_SECONDS) if self.probe_at else self.half_open_at

    def state(self, now: float) -> BreakerState:
        if self.is_closed:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self.half_open_at else BreakerState.HALF_OPEN

    def after(self, *events: BreakerEvent) -> Self:
        """The same once more has happened."""
        breaker = self
        for event in events:
            breaker = breaker._after(event)
        return breaker

    def shown(self, key: str, now: float) -> dict[str, Any]:
        """As people and programs see it; `key` is `<team>.<role>` or `<team>.provider:<name>`."""
        team, _, name = key.partition(".")
        is_provider = name.startswith(PROVIDER)
        return {
            "role": "" if is_provider else key,
            "provider": f"{team}.{name.removeprefix(PROVIDER)}" if is_provider else "",
            "state": self.state(now).value,
            "failed_probes": max(0, self.openings - 1),
            "opened_at": self.opened_at,
            "next_try_in_seconds": round(max(0.0, self.free_at - now), 3),
        }

    def _after(self, event: BreakerEvent) -> Self:
        match event.what:
            case "failed" if self.is_closed:
                return self._failed_closed(event.at)
            case "failed" if self.probe_at and event.at >= self.probe_at:
                return self._opened(event.at)
            case "answered" if self.is_closed:
                left = tuple(at for at in self.failures if at > event.at)
                return self if left == self.failures else self.model_copy(update={"failures": left})
            case "answered" if event.at >= self.opened_at:
                return type(self)()
            case "probed" if not self.is_closed and event.at >= self.half_open_at:
                return self.model_copy(update={"probe_at": max(self.probe_at, event.at)})
            case _:  # it speaks of a time before
                return self

    def _failed_closed(self, at: float) -> Self:
        times = sorted((*self.failures, at))
        failures = tuple(one for one in times if one > times[-1] - WINDOW_SECONDS)
        if len(failures) >= THRESHOLD:
            return self._opened(times[-1])
        return self.model_copy(update={"failures": failures})

    def _opened(self, at: float) -> Self:
        return type(self)(openings=min(1_000_000, self.openings + 1), opened_at=at)


def event_of(result: Result, at: float, *, by_owner: bool) -> BreakerEvent | None:
    """What a result says about its role; None: nothing. Of what an owner gave up itself only the timeout counts."""
    if result.status is ResultStatus.DONE:
        return BreakerEvent("answered", at)
    if result.error is None or result.status is not ResultStatus.FAILED or result.error.limited_until is not None:
        return None
    error_class = result.error.error_class
    if error_class in ANSWERED:
        return BreakerEvent("answered", at)
    is_against = error_class in AGAINST and (error_class == "timeout" or not by_owner)
    return BreakerEvent("failed", at) if is_against else None
