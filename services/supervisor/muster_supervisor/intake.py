"""Takes delivered requests in: each is identified, then refused or handed to a run."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress

from muster_bus.connection import Incoming
from muster_bus.lease import Delivery
from muster_bus.log import RequestLog
from muster_bus.process.about import work_for_request
from muster_bus.receive import opened
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.conflict import Conflict
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState
from muster_protocol.messages import Request
from muster_supervisor.owner import Owner, Resources
from muster_supervisor.poison import Poison, is_suspect, may_be_suspect, poison_reason
from muster_supervisor.run import Run
from muster_supervisor.steps.answer import refuse_unread
from muster_supervisor.taking.answered import acknowledge_again
from muster_supervisor.taking.disposition import Disposition, Held, classify, report_reuse
from muster_supervisor.taking.duplicates import Duplicates
from muster_supervisor.taking.notes import note_lone_take, note_returned
from muster_supervisor.taking.signs import Signs, signs_of_work

log = logging.getLogger("muster.supervisor")

REQUESTS = {Request.kind: Request}
SUSPECT_SECONDS = 2.0  # that the next suspect waits at most for the one before to have nothing more to do at once


class Intake:
    """Takes deliveries in and knows which requests this process supervises."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.runs: dict[str, Run] = {}
        self._duplicates: dict[str, Duplicates] = {}
        self.supervising: set[asyncio.Task[None]] = set()
        self._suspects = asyncio.Lock()

    async def take(self, delivery: Delivery) -> None:
        """Refuse what was delivered, or start a run and wait until it needs no slot of the pull any more."""
        run = None
        async with AsyncExitStack() as alone:
            try:
                if may_be_suspect(delivery.number) and not await self._is_next(delivery, alone):
                    return
                run = await self._start_run(delivery)
            except asyncio.CancelledError:
                await note_returned(self._resources.bus, self._resources.team.team, delivery)  # stopped before a run
                delivery.lease.hand_back()
                raise
            if run is not None and may_be_suspect(delivery.number):
                with suppress(TimeoutError):
                    async with asyncio.timeout(SUSPECT_SECONDS):  # wait_for may forget a cancellation
                        await run.settled.wait()
        if run is not None:
            await run.slot_released.wait()

    async def _is_next(self, delivery: Delivery, alone: AsyncExitStack) -> bool:
        """Wait until no other suspect is being taken; False: meanwhile a run has it, or it was given out again."""
        request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
        if self._is_held(request_id, delivery):  # a run whose lease was lost waits for this very delivery
            return False
        await alone.enter_async_context(self._suspects)
        if not delivery.lease.is_held:
            delivery.lease.drop()
            return False
        return True

    def on_control(self, message: Incoming) -> None:
        """Let the run of the request read its control messages, unless a supervisor wrote this one."""
        run = self.runs.get(subjects.last_token(message.subject))
        if run is not None and not h.is_owner((message.headers or {}).get(h.SENDER, "")):
            run.on_control()

    def on_conflict(self, record: Conflict) -> None:
        """A coordinator writes a record about a request: its answer will count them."""
        run = self.runs.get(record.request_id)
        if run is not None:
            run.owner.may_have_conflicts = True

    async def on_reconnect(self) -> None:
        """Let every run read what may have come while the broker was away."""
        for run in self.runs.values():
            run.on_control()
            run.owner.may_have_conflicts = True

    def stop(self) -> None:
        """Hand every request back at its next step, and every message that is kept."""
        for holder in (*self.runs.values(), *self._duplicates.values()):
            holder.stop()

    async def _start_run(self, delivery: Delivery) -> Run | None:
        """The run that supervises the request from now on; None if it needs no new one."""
        request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
        if self._is_held(request_id, delivery):
            return None
        try:
            if may_be_suspect(delivery.number) and not await self._check_unread(delivery, request_id):
                return self.runs.get(request_id)
            request = (await opened(self._resources.bus, delivery, REQUESTS, request_id, self._check_deadline)).body
        except Invalid as reason:
            left = await refuse_unread(self._resources.callbacks, delivery, reason)
            return None if left is None else await self._dispose(*left, delivery)
        if self._is_held(request_id, delivery):
            return None  # another copy started a run while the body was fetched
        return self._supervised(request_id, request, delivery)

    def _supervised(self, request_id: str, request: Request | None, delivery: Delivery) -> Run:
        work_for_request(request_id)
        log.info("→ request %s  delivery %d", request_id, delivery.number)
        run = Run(Owner(self._resources, request_id, request, Held.of(delivery).request_hash, delivery))
        self.runs[request_id] = run
        self._start(self._supervise(request_id, run))
        return run

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.supervising.add(task)
        task.add_done_callback(self.supervising.discard)

    async def _supervise(self, request_id: str, run: Run) -> None:
        try:
            await run.supervise()
        except Exception as error:
            # The lease runs out and the request is delivered again; if that never helps it is answered as poison.
            log.exception("… request %s: supervising it failed: %r", request_id, error)
            run.owner.lease.drop()
        else:
            if not run.is_duplicate:
                run.owner.lease.drop()  # settled, or not ours; renewed without a run it would never be delivered again
        finally:
            self.runs.pop(request_id, None)
            if (kept := self._duplicates.get(request_id)) is not None:
                kept.is_supervised = False
                kept.wake()
        if run.is_duplicate:
            self._keep(request_id, run.owner.delivery)

    def _is_held(self, request_id: str, delivery: Delivery) -> bool:
        """Whether this process has the request or this message already; then it goes on with the new delivery."""
        run, kept = self.runs.get(request_id), self._duplicates.get(request_id)
        if run is not None and delivery.sequence == run.owner.delivery.sequence:
            run.on_redelivery(delivery)
        elif run is not None or (kept is not None and kept.has(delivery.sequence)):
            self._keep(request_id, delivery)
        else:
            return False
        return True

    def _keep(self, request_id: str, delivery: Delivery) -> None:
        """Hold a message that is not the lease of its request, until the request is answered."""
        kept = self._duplicates.get(request_id)
        if kept is None:
            kept = self._duplicates[request_id] = Duplicates(self._resources, request_id)
            self._start(self._keep_until_answered(request_id, kept))
        kept.is_supervised = request_id in self.runs
        kept.add(delivery)

    async def _keep_until_answered(self, request_id: str, kept: Duplicates) -> None:
        try:
            await kept.keep()
        except asyncio.CancelledError:
            kept.release()
            raise
        except Exception as error:
            log.exception("… request %s: keeping its other messages failed: %r", request_id, error)
            kept.drop()
        finally:
            self._duplicates.pop(request_id, None)

    async def _dispose(self, found: Disposition, state: RequestState, delivery: Delivery) -> Run | None:
        """Do with an unread message what its disposition says."""
        request_id = state.request_id
        match found:
            case Disposition.ANSWERED:
                await acknowledge_again(self._resources.callbacks, delivery, state)
            case Disposition.KEPT:
                self._keep(request_id, delivery)
            case Disposition.STALE:
                delivery.lease.drop()
            case Disposition.OURS | Disposition.INHERITED if not self._is_held(request_id, delivery):
                return self._supervised(request_id, None, delivery)
            case _:
                pass  # somebody else started a run meanwhile
        return None

    async def _check_unread(self, delivery: Delivery, request_id: str) -> bool:
        """Whether the body is to be read; before that, because reading it may be what crashes the supervisor."""
        known, bus = RequestLog(self._resources.bus, request_id), self._resources.bus
        await known.refresh(from_leader=True)
        state = known.state
        found = await classify(bus, state, Held.of(delivery))
        if found is not Disposition.OURS or state.request_sequence not in (0, delivery.sequence):
            await report_reuse(bus, state, delivery)
            await self._dispose(found, state, delivery)
            return False
        reason = poison_reason(state, delivery.number, is_read=False)
        if reason and await signs_of_work(bus, state, delivery.number) is Signs.NONE:
            await bus.report(reason, delivery, request_id=request_id)
            raise Poison(reason)
        if is_suspect(state, delivery.number):
            await note_lone_take(bus, self._resources.team.team, delivery, request_id)
        return True

    def _check_deadline(self, request: Request) -> None:
        """Raise if the request could outlive its log; our own client checks that, other senders may not."""
        longest = self._resources.longest_deadline
        if (request.deadline_seconds or 0.0) > longest:
            text = f"{request.deadline_seconds:g} s are more than the {longest:g} s that are allowed here"
            raise Invalid(text, "deadline_seconds")
