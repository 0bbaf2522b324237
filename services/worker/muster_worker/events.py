"""The events of a worker: published without waiting, except for the note of a hand-back, which is stored."""

import logging
import time

from muster_agent.functions import Context
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import MusterError
from muster_protocol.messages import HandedBack, Message, Progress, Started, Task, ToolUsed

log = logging.getLogger("muster.worker")


class Events:
    """Publishes what happens to the attempts of one worker."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def started(self, task: Task, delivery: Delivery, role: str) -> None:
        started = Started(
            request_id=task.request_id,
            task_id=task.task_id,
            attempt=task.attempt,
            worker=self._bus.sender.instance,
            role=role,
            delivery=delivery.number,
            task_sequence=delivery.sequence,
        )
        self._publish(started, task)

    def context(self, task: Task) -> Context:
        """What a role gets beside its task: its inputs, and functions that publish how it goes."""

        def progress(text: str) -> None:
            event = Progress(request_id=task.request_id, task_id=task.task_id, attempt=task.attempt, text=text)
            self._publish(event, task)

        def tool_used(tool: str, seconds: float, error: str | None) -> None:
            used = ToolUsed(
                request_id=task.request_id,
                task_id=task.task_id,
                attempt=task.attempt,
                tool=tool,
                seconds=round(seconds, 4),
                error=error,
            )
            self._publish(used, task)

        return Context(task.context, progress, tool_used)

    async def returned_unread(self, delivery: Delivery) -> None:
        """Store the note for a task that was handed back before it was read: its message id names the attempt."""
        await self.handed_back(delivery, (delivery.headers or {}).get(h.MESSAGE_ID, ""))

    async def handed_back(self, delivery: Delivery, message_id: str) -> None:
        """Store a note, so that this delivery of the attempt is not counted as one without a result."""
        request_id, _, of_request = message_id.partition(".")
        task_id, _, attempt = of_request.rpartition(".")
        try:
            fields = {"request_id": request_id, "task_id": task_id, "attempt": attempt}
            instance = self._bus.sender.instance
            note = HandedBack.of({**fields, "worker": instance, "delivery": delivery.number})
            back = f"{message_id}.back.{instance}.{delivery.number}"
            subject = subjects.events(request_id)
            await self._bus.store(subject, note, request_id=request_id, message_id=back, give_up_after=1.0)
        except MusterError as error:
            log.warning("… task    %s  the note of its hand-back was not stored: %s", message_id, error)

    def _publish(self, event: Message, task: Task) -> None:
        message_id = f"{task.message_id}.{event.kind}.{self._bus.sender.instance}.{time.monotonic_ns()}"
        subject = subjects.events(task.request_id)
        self._bus.tell(subject, event, request_id=task.request_id, message_id=message_id)
