"""Notices that a live subscription gets nothing any more, though nobody need have written anything.

While nothing comes through it, it is written to by ourselves, on a longer subject that no stream stores. All who
listen to the same subject get that, so that it serves all of them: a fleet writes as little as one process.
"""

import asyncio
from collections.abc import Callable

from muster_bus.broker.nats_repairs import ECHO, RepairedClient
from muster_bus.broker.silence import Silence

WATCH_SECONDS = 5.0  # three of them in vain, and the connection is replaced


class Watch:
    """Looks now and then whether anything came through a subscription to `<prefix>.*`."""

    def __init__(self, nc: RepairedClient, subject: str, is_wanted: Callable[[], bool]) -> None:
        self._prefix = subject.removesuffix("*")
        self._is_wanted = is_wanted
        self._silence = Silence(nc, lambda: f"{self._prefix}{ECHO}")
        self._has_heard = False
        self._turn()

    @property
    def subject(self) -> str:
        """What is subscribed to: also one word more, for the echo."""
        return f"{self._prefix}>"

    def hears(self, subject: str) -> bool:
        """Note that something came; False: it is an echo, or nothing of ours."""
        self._has_heard = True
        return "." not in subject[len(self._prefix) :]

    def _turn(self) -> None:
        if not self._is_wanted():
            return
        if self._has_heard:
            self._has_heard, self._silence.since = False, 0.0
        else:
            self._silence.missed()
        asyncio.get_running_loop().call_later(WATCH_SECONDS, self._turn)
