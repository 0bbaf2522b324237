"""Settles task messages that nobody waits for and no worker takes: their time is over, and their request is answered.

An owner deletes the messages that it knows of when an attempt is given up and when the request is answered. What it
does not know stays, where no worker settles it: the owner was killed between the publish and its note, or the disk was
full. So each supervisor looks through the queue, slowly: a few messages at a time, from where it was, and again from
the start. Any number of them may do that at once, because a message is deleted at most once.
"""

import asyncio
import logging
import random

from muster_bus.broker.queues import delete_task, next_task
from muster_bus.connection import Bus
from muster_bus.log import RequestLog
from muster_protocol.errors import MusterError
from muster_protocol.messages import Task

log = logging.getLogger("muster.supervisor")

SWEEP_LEASES = 6  # between two looks: a minute; what is left over does no harm for so long
MAX_LOOKED_AT = 200  # messages in one look, one after the other: a fifth of a second in a minute
MAX_READ = 20  # logs that are read in one look


class Leftovers:
    """The look of one supervisor through TASKS."""

    def __init__(self, bus: Bus, lease_seconds: float) -> None:
        self._bus = bus
        self._pause = SWEEP_LEASES * lease_seconds
        self._looked_at = 0  # the sequence of the last message

    async def sweep(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))
            try:
                await self._look()
            except MusterError as error:
                self._looked_at += 1  # if it was this message, the next look gets past it
                log.debug("leftover tasks: not looked through: %s", error)

    async def _look(self) -> None:
        """Delete what is left over among the next messages."""
        answered: dict[str, bool] = {}
        for _ in range(MAX_LOOKED_AT):
            stored = await next_task(self._bus, self._looked_at)
            if stored is None:
                self._looked_at = 0
                return
            task = stored.task
            if task is not None and is_over(task, self._bus.clock.now()):
                if task.request_id not in answered:
                    if len(answered) == MAX_READ:
                        return
                    answered[task.request_id] = await self._is_answered(task.request_id)
                if answered[task.request_id] and await delete_task(self._bus, stored.sequence):
                    log.info("■ task    %s  deleted: its request is answered", task.attempt_id)
            self._looked_at = stored.sequence

    async def _is_answered(self, request_id: str) -> bool:
        """Whether nobody waits for a task of this request; its log may be gone, which is kept longer than any lasts."""
        known = RequestLog(self._bus, request_id)
        await known.refresh(from_leader=True)
        return known.state.answer is not None or known.state.last_sequence == 0


def is_over(task: Task, now: float) -> bool:
    """Whether a worker would not run it any more."""
    return now >= task.deadline
