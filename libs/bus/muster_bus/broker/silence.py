"""An inbox on which nothing comes any more: was its subscription lost, or is nobody there?"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from nats.errors import Error as NatsError

if TYPE_CHECKING:
    from muster_bus.broker.nats_repairs import RepairedClient

SILENCE_SECONDS = 10.0  # an echo takes a millisecond; one may be lost too


class Silence:
    """Notices that an inbox gets nothing on a connection that is up: a subscription may have been lost on the wire.

    When a reply is missing, the inbox is written to by ourselves. If that comes back, the broker is just slow, or does
    not store; if it does not, the connection is replaced, which subscribes anew.
    """

    __slots__ = ("_inbox", "_nc", "since")

    def __init__(self, nc: "RepairedClient", inbox: Callable[[], str]) -> None:
        self._nc = nc
        self._inbox = inbox
        self.since = 0.0  # when the first message was missing after the last that came; whoever gets one sets it to 0

    def missed(self) -> None:
        """A reply did not come in time."""
        now = time.monotonic()
        if not self._nc.is_connected or not (inbox := self._inbox()):
            self.since = 0.0
            return
        if self.since == 0.0:
            self.since = now
        elif now - self.since >= SILENCE_SECONDS:
            self.since = 0.0
            self._nc.give_up(NatsError("nats: nothing arrives on an inbox although the broker answers pings"))
            return
        self._nc.echo(inbox)
