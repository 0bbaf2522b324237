"""What can go wrong while a model works; the base class says whether another attempt may help.

Retryable
├── ModelAway    the provider is busy, limited or unreachable
│   └── RateLimited  it says that we ask too often
├── LimitReached our own limit lets the call start only after the attempt's time
├── BadOutput    the reply is cut off or not what was asked for
├── Unfinished   the model went on calling tools
├── CannotDo     the model says that it cannot do the task with what it has
└── ToolsFailed  rules had nothing to work with: every tool that they called failed
Terminal
├── MayNotSpawn  a role adds tasks although its team file does not say that it may
├── TooLate      our own limit lets the call start only after the deadline
├── NotPaid      the account may spend no more
├── KeyRefused   the provider refuses the key, or there is none
├── Refused      the model declines
└── OutOfBudget  what is left does not pay for another call
"""

from muster_protocol.errors import Retryable, Terminal


class ModelAway(Retryable):
    """The provider is busy, limited or unreachable. `retry_after_seconds` is what it asked for, if it did."""

    error_class = "network"

    def __init__(self, reason: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class RateLimited(ModelAway):
    """The provider says that we ask too often."""


class LimitReached(Retryable):
    """A call may start only after the attempt's time, at `until`: nobody was asked, and it is no failure of anybody."""

    error_class = "resource"

    def __init__(self, reason: str, until: float) -> None:
        super().__init__(reason)
        self.until = until


class BadOutput(Retryable):
    """The reply is cut off or not what was asked for."""

    error_class = "bad_output"


class Unfinished(Retryable):
    """The model went on calling tools until its turns were used up."""


class CannotDo(Retryable):
    """The model says that it cannot do the task with what it has."""


class ToolsFailed(Retryable):
    """Every tool that was called failed, and rules know nothing by themselves."""


class MayNotSpawn(Terminal):
    """A role adds tasks although its team file does not say that it may."""


class TooLate(Terminal):
    """A call may start only after the deadline."""

    error_class = "expired"


class NotPaid(Terminal):
    """The account may spend no more: only a person can change that."""


class KeyRefused(Terminal):
    """The provider refuses the key, or there is none."""


class Refused(Terminal):
    """The model declines the task."""

    error_class = "refusal"


class OutOfBudget(Terminal):
    """What is left of the budget does not pay for another call."""

    error_class = "budget"
