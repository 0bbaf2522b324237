"""Waits for a request no longer than it may take: where nobody answers, it says what is missing."""

import asyncio
import json
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from muster_bus.background import end
from muster_bus.buckets.workers import live_workers
from muster_bus.connection import Bus
from muster_bus.log import read_log
from muster_client.queue import Queued, queued
from muster_protocol.errors import MusterError
from muster_protocol.fold import RequestState, fold
from muster_protocol.missing import missing
from muster_protocol.status import Seen

T = TypeVar("T")

OVERDUE_SECONDS = 5.0  # after the deadline, by which an owner answers: a takeover may need a moment more
LONGEST_WAIT_SECONDS = 3600.0  # before the deadline is asked for again


class NoAnswer(TimeoutError):
    """No answer in time. The request goes on: its answer may still come. `missing` says what it waits for."""

    def __init__(self, request_id: str, what: str) -> None:
        super().__init__(f"no answer to {request_id} in time: {what}; the request goes on")
        self.missing = what


@dataclass(slots=True)
class Expected:
    """When an answer is to be there."""

    bus: Bus
    request_id: str
    usual_seconds: float  # what a request has that names no deadline
    team: str  # that is named while the log does not say one
    deadline: float | None = None  # in broker time, as far as it is known without asking

    async def seconds_left(self) -> float:
        """Until the answer is overdue; of what is not known at all a moment, in which that is found out."""
        if self.deadline is None and not self.bus.connected.is_set():
            return 0.0
        if self.deadline is None:
            try:
                await self._ask()
            except MusterError:
                return 0.0  # the broker is away, also for whoever waits
        known = self.bus.clock.now() if self.deadline is None else self.deadline
        return known + OVERDUE_SECONDS - self.bus.clock.now()

    async def is_overdue(self) -> bool:
        """Whether it is too late by what the log says by now: a deadline that was guessed may have been another."""
        self.deadline = None
        return await self.seconds_left() <= 0

    async def no_answer(self) -> NoAnswer:
        """Why there is none."""
        if not self.bus.connected.is_set():
            return NoAnswer(self.request_id, "the broker is away")  # a read would only find that out slowly
        try:
            state = await self._state()
            tags = {tag for worker in await live_workers(self.bus) for tag in worker.tags}
            seen = Seen(self.bus.clock.now(), live_tags=tags)
            return NoAnswer(self.request_id, missing(state, state.team or self.team, seen))
        except MusterError as error:
            return NoAnswer(self.request_id, str(error))

    async def _ask(self) -> None:
        state = await self._state()
        if state.answer is not None:
            return  # whoever waits is about to see it
        self.deadline = state.deadline
        if self.deadline is not None:
            return
        async with aclosing(queued(self.bus)) as requests:
            async for request in requests:
                if request.id == self.request_id:
                    self.team = request.team
                    self.deadline = request.time + (seconds_of(request) or self.usual_seconds)
                    return

    async def _state(self) -> RequestState:
        return fold(self.request_id, await read_log(self.bus, self.request_id, from_leader=True))


async def in_time(work: Coroutine[object, object, T], expected: Expected) -> T:
    """What the work gives, or NoAnswer as soon as the answer that it waits for is overdue."""
    working = asyncio.ensure_future(work)
    try:
        while True:
            left = min(await expected.seconds_left(), LONGEST_WAIT_SECONDS)
            done, _ = await asyncio.wait({working}, timeout=max(0.0, left))
            if done:
                return working.result()
            if await expected.is_overdue():
                raise await expected.no_answer()
    finally:
        await end(working)


def seconds_of(request: Queued) -> float | None:
    """The deadline that a request in the queue names; None also where its body cannot be read here."""
    try:
        fields = json.loads(request.body or b"{}")
        seconds = float(fields["deadline_seconds"])
    except (ValueError, TypeError, KeyError):
        return None
    return seconds if 0 < seconds < float("inf") else None
