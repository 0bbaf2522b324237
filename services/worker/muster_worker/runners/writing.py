"""What a model writes, as a few parts: at most one a second, so that no token is a message."""

import time
from collections.abc import Callable

from muster_bus.redact import KNOWN

EVERY_SECONDS = 1.0
MAX_PART = 2_000  # characters; a second's writing is a few hundred
MAX_PARTS = 300  # of one attempt: after five minutes whoever watches waits for the result
MAX_WORD = 200  # characters without a space; a longer secret may be cut in two


class Writing:
    """Gathers the texts of a stream and publishes them in parts that end between words: half a secret is not known."""

    def __init__(self, publish: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._publish = publish
        self._clock = clock
        self._text = ""
        self._parts = 0
        self._last = clock()

    def __call__(self, text: str) -> None:
        self._text = KNOWN(self._text + text)[-MAX_PART:]
        if self._clock() - self._last >= EVERY_SECONDS:
            self._say(_whole_words(self._text))

    def finish(self) -> None:
        """Publish what is left."""
        self._say(len(self._text))

    def _say(self, count: int) -> None:
        text = self._text[:count]
        if not text.strip():
            return
        self._text = self._text[count:]
        self._last = self._clock()
        if self._parts < MAX_PARTS:
            self._parts += 1
            self._publish(text)


def _whole_words(text: str) -> int:
    """How many characters of it end before the last word, which may go on; not every script has spaces."""
    ends = (n for n in range(len(text), 0, -1) if text[n - 1].isspace() or not text[n - 1].isascii())
    whole = next(ends, 0)
    return whole if len(text) - whole <= MAX_WORD else len(text)
