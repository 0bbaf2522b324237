"""Two errors say whether trying again can help: later it may work, or it never will.

MusterError
├── Retryable      later may work
│   └── BrokerAway     the broker cannot be reached, or refuses for now
└── Terminal       never will
    ├── Invalid        a message, plan or file breaks a rule; names the field
    └── Misconfigured  an installation differs from what is needed
"""

from typing import cast


class MusterError(Exception):
    """Anything that went wrong and has a name. `error_class` is how results, retries and traces call it."""

    error_class: str = "logic"


class Retryable(MusterError):
    """Later may work."""


class BrokerAway(Retryable):
    """The broker cannot be reached, or refuses for now."""

    error_class = "network"


class Terminal(MusterError):
    """Never will work."""


class Invalid(Terminal):
    """Something breaks a rule. `where` is the path of the field, such as `tasks.2.tag`."""

    error_class = "input"

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where


class Misconfigured(Terminal):
    """The installation differs from what is needed."""


_OTHERS: tuple[tuple[type[BaseException], str], ...] = (  # the first that fits
    (ConnectionError, "network"),
    (TimeoutError, "timeout"),
    (MemoryError, "resource"),
    (BaseException, "logic"),
)


def cause_of(raised: BaseException) -> BaseException:
    """The first error of a group, such as a TaskGroup raises: that one says what went wrong."""
    while isinstance(raised, BaseExceptionGroup):
        raised = cast("BaseExceptionGroup[BaseException]", raised).exceptions[0]
    return raised


def error_class_of(raised: BaseException) -> str:
    """The class of an error, ours or anybody's."""
    raised = cause_of(raised)
    if isinstance(raised, MusterError):
        return raised.error_class
    return next(name for kind, name in _OTHERS if isinstance(raised, kind))
