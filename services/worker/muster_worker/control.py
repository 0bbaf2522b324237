"""Decides which attempts a control message stops or asks for, and remembers the requests that were cancelled."""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from muster_bus.connection import Incoming
from muster_bus.receive import open_live
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid
from muster_protocol.messages import CONTROL_KINDS, Abort, Check, Note
from muster_protocol.messages.people import SERVICES, add_note
from muster_worker.attempt import RunningAttempt

log = logging.getLogger("muster.worker")

MAX_REMEMBERED = 10_000
MAY_ORDER = ("supervisor/", "coordinator/")


class Control:
    """Stops the attempts that an abort names. Tasks of an aborted request that arrive later are not run."""

    def __init__(self, running: Mapping[AttemptId, RunningAttempt]) -> None:
        self._running = running
        self._cancelled: OrderedDict[str, None] = OrderedDict()

    def is_cancelled(self, request_id: str) -> bool:
        return request_id in self._cancelled

    def on_message(self, message: Incoming) -> None:
        match order_in(message):
            case Abort() as abort:
                self._abort(abort)
            case Check() as check:
                for key in check.attempt_ids & self._running.keys():
                    self._running[key].answer_check(check.at)
            case Note() as note:
                for key in of_request(self._running, note.request_id):
                    add_note(self._running[key].notes, note.text)
            case None:
                return

    def _abort(self, abort: Abort) -> None:
        for key in stopped_by(abort, self._running):
            attempt = self._running[key]
            if abort.side is None:
                attempt.abort(abort.reason)
            elif attempt.is_side(abort.side):
                attempt.abort(abort.reason, keeps=abort.keeps)
        if not abort.attempts and abort.side is None:
            self._remember(abort.request_id)

    def _remember(self, request_id: str) -> None:
        self._cancelled[request_id] = None
        if len(self._cancelled) > MAX_REMEMBERED:
            self._cancelled.popitem(last=False)


def of_request(running: Iterable[AttemptId], request_id: str) -> list[AttemptId]:
    return [attempt for attempt in running if attempt.request_id == request_id]


def order_in(message: Incoming) -> Abort | Check | Note | None:
    """The abort, the check or the note that a control message carries, if its sender may give one."""
    try:
        sender, control = open_live(message, CONTROL_KINDS)
    except Invalid as reason:
        log.debug("%s: ignored a control message: %s", message.subject, reason)
        return None
    if isinstance(control, Note):
        return None if sender.startswith(SERVICES) else control
    if not isinstance(control, Abort | Check):
        return None  # a cancel is only a wish: the owner decides on it in the log, and then sends an abort
    return control if sender.startswith(MAY_ORDER) else None


def stopped_by(abort: Abort, running: Iterable[AttemptId]) -> list[AttemptId]:
    """The running attempts that an abort is meant for: those that it lists, or all of its request if it lists none."""
    listed = abort.attempt_ids
    return [attempt for attempt in running if (attempt in listed if listed else attempt.request_id == abort.request_id)]
