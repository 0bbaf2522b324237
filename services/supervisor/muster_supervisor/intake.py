"""Takes delivered requests in: each is identified, then refused or handed to a run."""

import asyncio
import logging

from muster_bus.connection import Bus, Incoming
from muster_bus.lease import Delivery
from muster_bus.log import RequestLog
from muster_bus.process.about import work_for_request
from muster_bus.receive import opened
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.conflict import Conflict
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.messages import Request, Taken
from muster_supervisor.disposition import report_reuse
from muster_supervisor.owner import Owner, Resources
from muster_supervisor.poison import Poison, may_be_poison, poison_reason
from muster_supervisor.run import Run
from muster_supervisor.steps.answer import refuse_unread

log = logging.getLogger("muster.supervisor")

REQUESTS = {Request.kind: Request}
RETURN_SECONDS = 1.0  # a hand-back that cannot be recorded by then counts as a take; it must not delay the hand-back


class Intake:
    """Takes deliveries in and knows which requests this process supervises."""

    def __init__(self, resources: Resources, longest_deadline: float) -> None:
        self._resources = resources
        self._longest_deadline = longest_deadline
        self.runs: dict[str, Run] = {}
        self.supervising: set[asyncio.Task[None]] = set()

    async def take(self, delivery: Delivery) -> None:
        """Refuse what was delivered, or start a run and wait until it needs no slot of the pull any more."""
        try:
            run = await self._start_run(delivery)
        except asyncio.CancelledError:
            await note_returned(self._resources.bus, self._resources.team.team, delivery)  # stopped before a run began
            delivery.lease.hand_back()
            raise
        if run is not None:
            await run.slot_released.wait()

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

    async def _start_run(self, delivery: Delivery) -> Run | None:
        """The run that supervises the request from now on; None if it needs no new one."""
        request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
        request_hash = h.request_hash(delivery.subject, delivery.headers, delivery.data)
        if await self._handle_duplicate(request_id, delivery, request_hash):
            return None
        try:
            request = await self._read(delivery, request_id)
        except Invalid as reason:
            await refuse_unread(self._resources.bus, delivery, reason)
            delivery.lease.ack()
            return None
        if await self._handle_duplicate(request_id, delivery, request_hash):
            return None  # another copy started a run while the body was fetched
        work_for_request(request_id)
        log.info("→ request %s  delivery %d", request_id, delivery.number)
        run = Run(Owner(self._resources, request_id, request, request_hash, delivery))
        self.runs[request_id] = run
        task = asyncio.get_running_loop().create_task(self._supervise(request_id, run))
        self.supervising.add(task)
        task.add_done_callback(self.supervising.discard)
        return run

    async def _supervise(self, request_id: str, run: Run) -> None:
        try:
            await run.supervise()
        except Exception as error:
            # The lease runs out and the request is delivered again; if that never helps it is answered as poison.
            log.exception("… request %s: supervising it failed: %r", request_id, error)
            run.owner.lease.drop()
        else:
            run.owner.lease.drop()  # settled, or not ours; renewed without a run it would never be delivered again
        finally:
            self.runs.pop(request_id, None)

    async def _handle_duplicate(self, request_id: str, delivery: Delivery, request_hash: str) -> bool:
        """Settle a delivery whose id this process supervises already; False: it does not."""
        run = self.runs.get(request_id)
        if run is None:
            return False
        if delivery.sequence == run.owner.delivery.sequence:
            run.on_redelivery(delivery)
        elif request_hash == run.owner.request_hash:
            delivery.lease.ack()  # a second copy: the first one is the lease
        else:
            await report_reuse(run.owner, delivery)
            delivery.lease.ack()
        return True

    async def _read(self, delivery: Delivery, request_id: str) -> Request:
        """The request that was delivered; Invalid says why there is none or why it is not read."""
        if may_be_poison(delivery.number):
            await self._check_poison(delivery, request_id)
        request = await opened(self._resources.bus, delivery, REQUESTS, request_id, self._check_deadline)
        return request.body

    async def _check_poison(self, delivery: Delivery, request_id: str) -> None:
        """Raise before the body is read, because reading it may be what crashes the supervisor."""
        known = RequestLog(self._resources.bus, request_id)
        await known.refresh(from_leader=True)
        if reason := poison_reason(known.state, delivery.number, is_read=False):
            await self._resources.bus.report(reason, delivery, request_id=request_id)
            raise Poison(reason)

    def _check_deadline(self, request: Request) -> None:
        """Raise if the request could outlive its log; our own client checks that, other senders may not."""
        if (request.deadline_seconds or 0.0) > self._longest_deadline:
            text = (
                f"{request.deadline_seconds:g} s are more than the {self._longest_deadline:g} s that are allowed here"
            )
            raise Invalid(text, "deadline_seconds")


async def note_returned(bus: Bus, team: str, delivery: Delivery) -> None:
    """Record that a delivery is handed back before a run began, so that it does not count as an unproductive take."""
    request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
    note = Taken(
        instance=bus.sender.instance,
        delivery=delivery.number,
        team=team,
        deadline=delivery.time,
        request_hash=h.request_hash(delivery.subject, delivery.headers, delivery.data),
        request_sequence=delivery.sequence,
        handed_back=True,
    )
    try:
        await bus.store(note, bus.origin(request_id), give_up_after=RETURN_SECONDS)
    except MusterError as error:
        log.warning("← request %s: handed back, but that was not recorded: %s", request_id, error)
