"""What a model writes, as a few parts: at most one a second, so that no token is a message."""

import time
from collections.abc import Callable

EVERY_SECONDS = 1.0
MAX_PART = 2_000  # characters; a second's writing is a few hundred
MAX_PARTS = 300  # of one attempt: after five minutes whoever watches waits for the result


class Writing:
    """Gathers the texts of a stream and publishes them in parts."""

    def __init__(self, publish: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._publish = publish
        self._clock = clock
        self._text = ""
        self._parts = 0
        self._last = clock()

    def __call__(self, text: str) -> None:
        self._text = (self._text + text)[-MAX_PART:]
        if self._clock() - self._last >= EVERY_SECONDS:
            self.finish()

    def finish(self) -> None:
        """Publish what is left."""
        text, self._text = self._text, ""
        self._last = self._clock()
        if text.strip() and self._parts < MAX_PARTS:
            self._parts += 1
            self._publish(text)
