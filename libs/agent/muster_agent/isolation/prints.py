"""What a process prints, as lines of the worker's log: without known secrets, and no more than somebody reads."""

import asyncio
import codecs
import contextvars
import io
import os
from contextlib import suppress

from muster_bus.process.logging import LoggedStream

MAX_PRINTED = 64 * 1024  # characters of one call
_CHUNK = 64 * 1024
_MOST_CHUNKS = 16  # that are read at once when a call ends
PAUSE_SECONDS = 0.002  # between two reads of what nobody will see: a flood costs the worker next to nothing


class Prints:
    """One of the two streams of a process."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name
        self._loop = asyncio.get_running_loop()
        self._paused: asyncio.TimerHandle | None = None
        self._is_open = True
        os.set_blocking(descriptor, False)
        self.begin()
        self._loop.add_reader(descriptor, self._read)

    def begin(self) -> None:
        """A call begins: what is printed from now on belongs to whatever the caller works for."""
        self._context = contextvars.copy_context()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines = LoggedStream(io.StringIO(), self._name)
        self._left = MAX_PRINTED

    def end(self) -> None:
        """A call ends: what it has printed is logged before its output is used."""
        for _ in range(_MOST_CHUNKS):
            if not self._read():
                break
        self._context.run(self._lines.flush)

    def close(self) -> None:
        if self._is_open:
            self.end()
            self._stop()
            self._is_open = False
            os.close(self._descriptor)

    def _read(self) -> bool:
        """Log what there is; False if there is nothing."""
        if not self._is_open:
            return False
        try:
            found = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            found = b""
        if not found:
            self._stop()
            return False
        if self._left > 0:
            self._context.run(self._log, self._decoder.decode(found))
        else:
            self._pause()
        return True

    def _log(self, text: str) -> None:
        self._lines.write(text[: self._left])
        self._left -= len(text)
        if self._left <= 0:
            self._lines.write(f"\n… more than {MAX_PRINTED:,} characters: the rest of this call's is left out\n")

    def _pause(self) -> None:
        self._loop.remove_reader(self._descriptor)
        if self._paused is None:
            self._paused = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._paused = None
        if self._is_open:
            self._loop.add_reader(self._descriptor, self._read)

    def _stop(self) -> None:
        if self._paused is not None:
            self._paused.cancel()
            self._paused = None
        with suppress(ValueError, OSError):
            self._loop.remove_reader(self._descriptor)
