"""Supervises one request, from the moment it is taken to its answer.

How it works; the numbers are those of docs/decisions.

Lease. A request is a message on `requests.<team>` that is acknowledged only when its answer is stored. Until then
its delivery is a lease (10 s): the bus renews it ten times per lease with in-progress acks that the broker
confirms (2, 14). A lease whose last confirmed renewal is older than that is lost. `Owner.check` runs before every
write and raises `LeaseLost`; the run then writes nothing until the broker delivers the request to this process
again (`on_redelivery`), and gives up after three leases without a delivery.

Term. The lease only saves work; that two supervisors do no harm depends on the log alone. An owner begins by
appending `taken`, and the sequence of that entry is its term. Everything it writes carries the term, and the fold
ignores what carries another term than that of the last `taken` (2). The first `taken` of a new request is one
compare-and-set on an empty log, without a read (6). For any other delivery the log is read first, and `classify`
says whether the request is ours, answered, led by another message (23), or held by another supervisor.

Steps. The fold of the log is all that is known about a request (1). The loop asks `due` which steps the state and
the time call for, carries them out, and asks again: what counts is what the fold says after a write, not what was
meant. Plan and answer are compare-and-set, so there is one of each; everything else is appended. What may take
long and concerns single tasks (publishing, refining, aborting) or people (controls) runs in the background of the
owner. If it fails with an unexpected error, the run fails with it.

Waiting. If no step is due, the run waits until the log changes or the next timer is due, at most LOOK_SECONDS:
then it reads the log, since the announcement of an entry can be lost. A run that has taken its request holds no
slot of the pull, so that thousands of requests can wait at once.

Takeover. It is the same code as a start: read the log, append `taken`, go on with what is due. Tasks that are
reserved but not recorded as published are published again; the broker drops a second copy with the same message
id, and a worker finds a stored result in the log (13). A delivery that waited in our socket while this process hung
may be older than that of the next owner: `_check_not_stale` compares their numbers (2). Pulls end within half a
lease: a hung process is not sent its own requests again (8). Takes without progress or a hand-back are counted by
the delivery number; after three the request is answered from its log, unless others may be at work (poison.py).

End. Answered for certain: ack. Stopped: hand back. Superseded, or no redelivery: drop the lease and write nothing.
Any other error: the intake drops the lease, and the broker delivers the request again when the lease has run out.
"""

import asyncio
import logging
import time

from muster_bus.lease import Delivery
from muster_protocol.errors import MusterError
from muster_supervisor.abort import stop_overtaken
from muster_supervisor.carry_out import Steps
from muster_supervisor.choosing.holding import Holding
from muster_supervisor.control import Controls
from muster_supervisor.decide import ALLOWANCE, Allowance, due, next_time
from muster_supervisor.owner import LeaseLost, Owner, Superseded
from muster_supervisor.poison import poison_reason
from muster_supervisor.spans import export_workflow, is_workflow_exported, take_over_span
from muster_supervisor.steps.answer import refuse
from muster_supervisor.steps.dispatch import publish_again
from muster_supervisor.taking.answered import acknowledge, acknowledge_again
from muster_supervisor.taking.disposition import Disposition, Held, classify, report_reuse
from muster_supervisor.taking.signs import Signs, signs_of_work

log = logging.getLogger("muster.supervisor")

LOOK_SECONDS = 5.0  # after which the log is read without an announcement, which can be lost in a cluster
UNKNOWN_KIND_DELAY_SECONDS = 2.0  # before the broker delivers the request again, perhaps to a newer supervisor
REDELIVERY_LEASES = 3  # how many leases a run that lost its own waits for a new delivery


class Run:
    """One request, supervised by this process."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._redelivered = asyncio.Event()
        self._controls = Controls(owner)
        self._steps = Steps(owner)
        self._holding = Holding(owner)
        self._is_stopping = False
        self._has_exported_workflow = False
        self._lease_lost_at = 0.0
        self.is_duplicate = False  # another message is the lease of the request: ours is to be kept
        self.slot_released = asyncio.Event()  # the request is taken, or the run has ended
        self.settled = asyncio.Event()  # what was due at the start is done, or the run has ended

    def on_redelivery(self, delivery: Delivery) -> None:
        """The broker delivered the request to us again: go on with the new delivery, in the same run."""
        self.owner.lease.drop()
        self.owner.delivery = delivery
        self._redelivered.set()
        self.owner.log.wake()

    def stop(self) -> None:
        """Hand the request back at the next step."""
        self._is_stopping = True
        self.owner.log.wake()

    async def give_up(self, seconds: float) -> None:
        """Hand the request back although a step was cancelled in the middle."""
        try:
            async with asyncio.timeout(seconds):
                await self.owner.hand_back(0.0)
        except (TimeoutError, LeaseLost, Superseded, MusterError):
            self.owner.lease.hand_back()

    def on_control(self) -> None:
        """A message about this request came on `control`, or may have come unseen."""
        self._controls.read_soon()

    async def supervise(self) -> None:
        """Bring the request from wherever its log says it is to its answer."""
        owner = self.owner
        with owner.bus.tracing.under(owner.trace):
            await owner.log.open()
            try:
                await self._supervise_under_leases()
            except Superseded:
                log.info("← request %s  taken over by %s", owner.request_id, owner.state.owner)
                owner.lease.drop()
            finally:
                self.slot_released.set()
                self.settled.set()
                await owner.close()

    async def _supervise_under_leases(self) -> None:
        """Supervise; after a lost lease begin again with the next delivery, if it comes to us."""
        while True:
            try:
                await self._supervise()
                return
            except LeaseLost:
                self._lease_lost_at = self._lease_lost_at or time.monotonic()
                log.warning("… request %s: lease lost, writing nothing until it comes again", self.owner.request_id)
                if not await self._await_redelivery():
                    return

    async def _supervise(self) -> None:
        """Take the request, then carry out what is due until it is answered, stopped or lost."""
        owner = self.owner
        if not await self._begin():
            return
        self.slot_released.set()  # what follows waits for models, workers or people: the pull may take another request
        while not await owner.is_answered():
            if self._is_stopping or self._sees_unknown_kind():
                await owner.hand_back(UNKNOWN_KIND_DELAY_SECONDS if owner.log.unknown_kind else 0.0)
                return
            if self._redelivered.is_set():
                await self._take()
            owner.check()
            self._controls.poll()
            stop_overtaken(owner)
            now = owner.now()
            if steps := self._steps.startable(due(owner.state, now, self._allowance(), self._holding.at(now))):
                await self._steps.carry_out(steps)
            else:
                await self._wait()
        await acknowledge(owner.bus, owner.delivery, owner.state)

    async def _begin(self) -> bool:
        """Take the request: a new one in one write, any other after reading its log. False: it is not ours."""
        owner = self.owner
        if owner.delivery.number == 1 and not owner.term and await owner.take_first():
            self._export_workflow()  # before anything can hang under it
            self.on_control()
            return True
        await owner.log.refresh()
        found = await classify(owner.bus, owner.state, Held.of(owner.delivery))
        if found in (Disposition.ANSWERED, Disposition.INHERITED):
            await report_reuse(owner.bus, owner.state, owner.delivery)
        match found:
            case Disposition.ANSWERED if await owner.is_answered():
                await acknowledge_again(owner.bus, owner.delivery, owner.state)
            case Disposition.KEPT:
                self.is_duplicate = True
            case Disposition.STALE | Disposition.ANSWERED:
                owner.lease.drop()
            case Disposition.OURS | Disposition.INHERITED:
                if found is Disposition.INHERITED:
                    owner.inherit()
                await self._take()
                return True
        return False

    async def _take(self) -> None:
        """Begin a term, give up a poison request, and start what a term begins with."""
        owner = self.owner
        if self._redelivered.is_set():
            self._redelivered.clear()
            await self._check_not_stale()
        has_workflow, is_first = is_workflow_exported(owner.state), owner.state.term == 0
        if is_first:
            await owner.take()
        else:
            with take_over_span(owner, self._seconds_without_lease()):
                await owner.take()
        if not has_workflow and not self._has_exported_workflow:
            self._export_workflow()
        self._controls.start_over()
        if owner.state.answer is not None:
            return
        owner.check()
        if reason := poison_reason(owner.state, owner.delivery.number, is_read=True):
            signs = await signs_of_work(owner.bus, owner.state, owner.delivery.number)
            if signs is Signs.NONE:
                await refuse(owner, reason, "poison")
                return
            if signs is Signs.SEEN:
                await owner.record_survival()
        self.on_control()
        owner.in_background(lambda: publish_again(owner))

    def _export_workflow(self) -> None:
        export_workflow(self.owner.bus, self.owner.delivery, self.owner.trace, self.owner.state)
        self.owner.is_workflow_new = self._has_exported_workflow = True

    def _seconds_without_lease(self) -> float:
        """How long we have written nothing because our own lease was lost."""
        lost_at, self._lease_lost_at = self._lease_lost_at, 0.0
        return time.monotonic() - lost_at if lost_at else 0.0

    async def _check_not_stale(self) -> None:
        """Raise if the next owner holds a later delivery: ours waited in the socket while this process hung."""
        owner = self.owner
        await owner.log.refresh()
        if owner.state.term != owner.term and owner.state.delivery > owner.delivery.number:
            raise Superseded

    async def _wait(self) -> None:
        """Wait until the log changes, a timer is due, or it is time to read the log without an announcement."""
        self.settled.set()
        owner = self.owner
        times = [time for time in (next_time(owner.state), self._holding.until) if time is not None]
        until = min(times, default=None)
        timeout = min(LOOK_SECONDS, owner.resources.lease_seconds)
        is_look = until is None or until - owner.now() > timeout
        if not is_look and until is not None:
            timeout = max(0.001, until - owner.now())
        if not await owner.log.changed(timeout) and is_look:
            await owner.log.refresh(from_leader=False)

    async def _await_redelivery(self) -> bool:
        """Write nothing until the broker delivers the request to us again; False: it did not."""
        try:
            async with asyncio.timeout(self.owner.resources.lease_seconds * REDELIVERY_LEASES):
                return await self._redelivered.wait()
        except TimeoutError:
            return False

    def _sees_unknown_kind(self) -> bool:
        """Whether there is an entry that only a newer supervisor can read, and time for one to come."""
        return self.owner.log.unknown_kind is not None and self.owner.seconds_left() > 3 * UNKNOWN_KIND_DELAY_SECONDS

    def _allowance(self) -> Allowance:
        """What the team gives one attempt, and what the workers take."""
        owner = self.owner
        tokens = owner.resources.team.limits.task_tokens or ALLOWANCE.tokens
        return Allowance(tokens=tokens, window=owner.resources.windows.of(owner.tags()))
