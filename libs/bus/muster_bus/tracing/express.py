"""Exports single spans at once, in the background, and says when they are out or that nobody takes them.

The thread lives as long as there is something to send: an idle service has none, and a fork inherits none.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = logging.getLogger("muster.bus")

MAX_WAITING = 2048  # spans; beyond it they are dropped and counted
JOIN_SECONDS = 1.0  # an export that takes longer at the end of a process is given up


class Express:
    """Sends what cannot wait for the next batch."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lock = threading.Lock()
        self._waiting: list[ReadableSpan] = []
        self._settled: list[Future[None]] = []
        self._thread: threading.Thread | None = None
        self.is_away = False  # the last export failed, or somebody waited for it in vain
        self.dropped = 0

    def send(self, spans: Sequence[ReadableSpan]) -> None:
        """Export them soon; returns at once."""
        with self._lock:
            if len(self._waiting) + len(spans) > MAX_WAITING:
                self.dropped += len(spans)
                return
            self._waiting += spans
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._drain, name="muster-express", daemon=True)
                self._thread.start()

    def settled(self) -> "Future[None]":
        """Done when everything that was sent so far is exported, or was tried."""
        settled: Future[None] = Future()
        with self._lock:
            if self._thread is None:
                settled.set_result(None)
            else:
                self._settled.append(settled)
        return settled

    def close(self) -> None:
        """Wait a moment for what is under way; a collector that is away is not waited for."""
        thread = self._thread
        if thread is not None and not self.is_away:
            thread.join(JOIN_SECONDS)
        self._exporter.shutdown()
        if self.dropped:
            log.warning("%d spans were dropped: the collector takes them too slowly", self.dropped)

    def _drain(self) -> None:
        while True:
            with self._lock:
                spans, self._waiting = self._waiting, []
                settled, self._settled = self._settled, []
                if not spans:
                    self._thread = None
            is_over = not spans
            if spans:
                self.is_away = not self._export(spans)
            for waiting in settled:
                if waiting.set_running_or_notify_cancel():  # else its waiter has given up
                    waiting.set_result(None)
            if is_over:
                return

    def _export(self, spans: list[ReadableSpan]) -> bool:
        try:
            return self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as error:  # noqa: BLE001 - whatever an exporter raises, the service goes on
            log.debug("%d spans were not exported: %r", len(spans), error)
            return False
