"""The events of a worker. Nobody waits for them, except for the note of a hand-back.

What tells of double work, `started` and `refused`, is repeated in the background until it is stored.
"""

import logging
import secrets
import time
from collections.abc import Callable, Sequence

from muster_agent.functions import Context
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol import headers as h
from muster_protocol.attempt_id import AttemptId
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.messages import Event, HandedBack, Progress, Refused, Started, Task, ToolUsed
from muster_worker.confirming import Confirming
from muster_worker.result import log_name

log = logging.getLogger("muster.worker")

NOTE_SECONDS = 1.0  # a hand-back that cannot be noted by then counts as a take


class Events:
    """Publishes what happens to the attempts of one worker."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._confirming = Confirming(bus)

    def started(self, task: Task, delivery: Delivery, role: str, at: float, *, is_again: bool = False) -> None:
        """An attempt runs here: said once, and again when somebody asks."""
        started = Started(
            **task.attempt_id._asdict(),
            worker=self._bus.sender.instance,
            role=role,
            delivery=delivery.number,
            task_sequence=delivery.sequence,
            at=round(at, 6),
        )
        origin = self._bus.origin(task.request_id, nonce=secrets.token_hex(4) if is_again else "")
        self._confirming.send(started, origin, delivery.headers)

    def refused(self, attempt: AttemptId, delivery: Delivery, why: str) -> None:
        """A message of an attempt was not run here."""
        refused = Refused(
            **attempt._asdict(),
            worker=self._bus.sender.instance,
            delivery=delivery.number,
            task_sequence=delivery.sequence,
            why=why,
        )
        self._confirming.send(refused, self._bus.origin(attempt.request_id), delivery.headers)

    async def finish(self, timeout: float) -> None:
        """Wait a little for what is not stored yet."""
        await self._confirming.finish(timeout)

    def context(self, task: Task, announce_start: Callable[[], None], notes: Sequence[str] = ()) -> Context:
        """What a role gets beside its task: its inputs, and functions that publish how it goes.

        The start is announced before anything else is said about the attempt.
        """

        def progress(text: str) -> None:
            announce_start()
            event = Progress(**task.attempt_id._asdict(), text=text)
            self._publish(event)

        def wrote(text: str) -> None:
            announce_start()
            self._publish(Progress(**task.attempt_id._asdict(), text=text, is_part=True))

        def tool_used(tool: str, seconds: float, error: str | None, error_class: str | None = None) -> None:
            announce_start()
            if error is not None:
                fields = {"status": "failed", **({"error_class": error_class} if error_class else {})}
                log.warning("✗ tool    %s  %s failed: %s", log_name(task), tool, error, extra=fields)
            used = ToolUsed(
                **task.attempt_id._asdict(),
                tool=tool,
                seconds=round(seconds, 4),
                error=error,
                error_class=error_class,
            )
            self._publish(used)

        return Context(task.context, progress, tool_used, notes, wrote=wrote)

    def waiting(self, task: Task, text: str, waits_for: str = "", waits_until: float = 0.0) -> None:
        """An attempt waits for a limit of its provider, or goes on after that."""
        event = Progress(**task.attempt_id._asdict(), text=text, waits_for=waits_for, waits_until=round(waits_until, 3))
        self._publish(event)

    async def returned_unread(self, delivery: Delivery) -> None:
        """Store the note for a task that was handed back before it was read: its message id names the attempt."""
        message_id = (delivery.headers or {}).get(h.MESSAGE_ID, "")
        try:
            attempt = AttemptId.parse(message_id)
        except Invalid as error:
            log.warning("… task    %s  the note of its hand-back was not stored: %s", message_id, error)
            return
        await self.handed_back(delivery, attempt)

    async def handed_back(self, delivery: Delivery, attempt: AttemptId, why: str = "") -> None:
        """Store a note, so that this delivery of the attempt is not counted as one without a result."""
        instance = self._bus.sender.instance
        note = HandedBack(
            **attempt._asdict(), worker=instance, delivery=delivery.number, task_sequence=delivery.sequence, why=why
        )
        try:
            await self._bus.store(note, self._bus.origin(attempt.request_id), give_up_after=NOTE_SECONDS)
        except MusterError as error:
            log.warning("… task    %s  the note of its hand-back was not stored: %s", attempt, error)

    def _publish(self, event: Event) -> None:
        self._bus.announce(event, self._bus.origin(event.request_id, nonce=str(time.monotonic_ns())))
