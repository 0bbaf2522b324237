"""What can go wrong with a function in a process of its own.

Retryable
├── RaisedInside   the function raised; `error_class` is that of what it raised
│   └── RaisedForGood  … and no further attempt can help
└── Cut            its process was ended, or there is none; `was_called`: it may have done something
    ├── TookTooLong    it had no output in its time
    ├── UsedTooMuch    it reached a limit of memory or processor time, or there is no room for its process
    └── ProcessLost    its process ended, or said what nobody understands
"""

from muster_agent.isolation.messages import Raised
from muster_protocol.errors import Retryable


class RaisedInside(Retryable):
    """The function raised something, in its own process."""

    is_final = False

    def __init__(self, raised: Raised) -> None:
        super().__init__(raised.text)
        self.error_class = raised.error_class
        self.said = raised.said
        self.place = raised.place
        self.stack = raised.stack


class RaisedForGood(RaisedInside):
    """The function raised something that no further attempt can help with."""

    is_final = True


class Cut(Retryable):
    """Its process was ended before it came to an end, or there is none."""

    was_called = False


class TookTooLong(Cut):
    """It had no output in its time."""

    error_class = "timeout"


class UsedTooMuch(Cut):
    """It reached a limit of memory or processor time, or there is no room for its process."""

    error_class = "resource"


class ProcessLost(Cut):
    """Its process ended, or said what nobody understands."""


def error_of(raised: Raised) -> RaisedInside:
    return RaisedForGood(raised) if raised.is_final else RaisedInside(raised)
