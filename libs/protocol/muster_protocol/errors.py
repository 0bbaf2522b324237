"""Two errors say whether trying again can help: later it may work, or it never will.

MusterError
├── Retryable      later may work
│   └── BrokerAway     the broker cannot be reached, or refuses for now
└── Terminal       never will
    ├── Invalid        a message, plan or file breaks a rule; names the field
    └── Misconfigured  an installation differs from what is needed
"""


class MusterError(Exception):
    """Anything that went wrong and has a name."""


class Retryable(MusterError):
    """Later may work."""


class BrokerAway(Retryable):
    """The broker cannot be reached, or refuses for now."""


class Terminal(MusterError):
    """Never will work."""


class Invalid(Terminal):
    """Something breaks a rule. `where` is the path of the field, such as `tasks.2.tag`."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where


class Misconfigured(Terminal):
    """The installation differs from what is needed."""
