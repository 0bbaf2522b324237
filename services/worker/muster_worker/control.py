"""Decides which attempts of this worker a control message stops, and remembers the requests that were cancelled."""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from muster_bus.connection import Incoming
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid
from muster_protocol.messages import CONTROL_KINDS, Abort
from muster_worker.attempt import AttemptKey, RunningAttempt

log = logging.getLogger("muster.worker")

MAX_REMEMBERED = 10_000
MAY_ABORT = ("supervisor/", "coordinator/")


class Control:
    """Stops the attempts that an abort names. Tasks of an aborted request that arrive later are not run."""

    def __init__(self, running: Mapping[AttemptKey, RunningAttempt]) -> None:
        self._running = running
        self._cancelled: OrderedDict[str, None] = OrderedDict()

    def is_cancelled(self, request_id: str) -> bool:
        return request_id in self._cancelled

    def on_message(self, message: Incoming) -> None:
        abort = abort_in(message)
        if abort is None:
            return
        for key in stopped_by(abort, self._running):
            self._running[key].abort()
        if not abort.attempts:
            self._remember(abort.request_id)

    def _remember(self, request_id: str) -> None:
        self._cancelled[request_id] = None
        if len(self._cancelled) > MAX_REMEMBERED:
            self._cancelled.popitem(last=False)


def abort_in(message: Incoming) -> Abort | None:
    """The abort that a control message carries, if its sender may give one."""
    try:
        sender = h.require_sender(message.headers)
        control = h.require_kind(message.headers, CONTROL_KINDS).read(message.data)
    except Invalid as reason:
        log.debug("%s: ignored a control message: %s", message.subject, reason)
        return None
    if control.request_id != subjects.last_token(message.subject):
        return None  # the broker checks who may publish on a subject, but not which request the body names
    if not isinstance(control, Abort):
        return None  # a cancel is only a wish: the owner decides on it in the log, and then sends an abort
    return control if sender.startswith(MAY_ABORT) else None


def stopped_by(abort: Abort, running: Iterable[AttemptKey]) -> list[AttemptKey]:
    """The running attempts that an abort is meant for: those that it lists, or all of its request if it lists none."""
    listed = {(abort.request_id, *attempt) for attempt in abort.attempts}
    return [key for key in running if (key in listed if listed else key[0] == abort.request_id)]
