"""One request, attended from its taking to its answer: what `due` says is carried out, and the log is waited for."""

import asyncio
import logging
import time
from typing import assert_never

from muster_bus import telemetry
from muster_bus.lease import Delivery
from muster_protocol.errors import MusterError
from muster_supervisor.control import read_controls
from muster_supervisor.decide import (
    Allowance,
    DispatchTasks,
    Expire,
    GiveAnswer,
    MakePlan,
    Refine,
    Step,
    due,
    next_time,
)
from muster_supervisor.disposition import Disposition, classify
from muster_supervisor.owner import LeaseLost, Owner, Superseded
from muster_supervisor.steps.answer import give_answer
from muster_supervisor.steps.dispatch import dispatch, expire, publish_again, refine
from muster_supervisor.steps.plan import plan, refuse

log = logging.getLogger("muster.supervisor")

LOOK_SECONDS = 5.0  # read the log though nothing was heard: a repetition can be lost in a cluster
PACE_SECONDS = 0.005  # between two dispatches of one saturated request, so that several tasks share a reservation
MAX_UNPRODUCTIVE_TAKES = 3
UNKNOWN_KIND_DELAY_SECONDS = 2.0


class Run:
    """The attendance of one request by one supervisor."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._redelivered = asyncio.Event()
        self._dispatched_at = 0.0
        self._looked_at = 0.0
        self._refining: set[str] = set()
        self._is_stopping = False
        self._has_controls = self._is_reading_controls = False
        self._controls_read = 0
        self.slot_released = asyncio.Event()  # taken, or ended

    def on_redelivery(self, delivery: Delivery) -> None:
        """The broker delivered the request again, to us: go on under the new handle, never twice."""
        self.owner.lease.drop()
        self.owner.delivery = delivery
        self._redelivered.set()
        self.owner.log.wake()

    def stop(self) -> None:
        """Hand the request back at the next step."""
        self._is_stopping = True
        self.owner.log.wake()

    async def give_up(self, seconds: float) -> None:
        """Cancelled in the middle of a step: hand the request back all the same, noted as a clean end."""
        try:
            async with asyncio.timeout(seconds):
                await self.owner.hand_back(0.0)
        except (TimeoutError, LeaseLost, Superseded, MusterError):
            self.owner.lease.hand_back()

    def on_control(self) -> None:
        """Somebody said something on `control`."""
        self._looked_at = time.monotonic()
        self._has_controls = True
        if not self._is_reading_controls:  # one reader, however many speak
            self._is_reading_controls = True
            self.owner.in_background(self._read_controls)

    async def _read_controls(self) -> None:
        try:
            while self._has_controls:
                self._has_controls = False
                term = self.owner.term
                read = await read_controls(self.owner, self._controls_read)
                if self.owner.term == term:
                    self._controls_read = read
                else:
                    self._has_controls = True  # what was decided under a term that ended meanwhile may not count
        finally:
            self._is_reading_controls = False

    async def supervise(self) -> None:
        """From wherever the log says the request is, to its answer."""
        owner = self.owner
        delivery = owner.delivery
        attributes = telemetry.attributes_of("process", delivery.subject, "requests.{team}", owner.request_id)
        with telemetry.span(
            "process requests.{team}",
            telemetry.SpanKind.CONSUMER,
            {**attributes, "messaging.nats.delivery_count": delivery.number},
            carrier=delivery.headers or {},
            root=owner.request_id,
        ):
            await owner.log.open()
            try:
                await self._supervise_under_leases()
            except Superseded:
                log.info("← request %s  taken over by %s", owner.request_id, owner.state.owner)
                owner.lease.drop()
            finally:
                self.slot_released.set()
                await owner.close()

    async def _supervise_under_leases(self) -> None:
        while True:
            try:
                await self._supervise()
                return
            except LeaseLost:
                log.warning("… request %s  lease lost, writing nothing", self.owner.request_id)
                if not await self._await_redelivery():
                    return

    async def _supervise(self) -> None:
        owner = self.owner
        if not await self._begin():
            return
        self.slot_released.set()  # what follows waits for models, workers or people: others may be taken meanwhile
        while owner.state.answer is None:
            if self._is_stopping or self._sees_unknown_kind():
                await owner.hand_back(UNKNOWN_KIND_DELAY_SECONDS if owner.log.unknown_kind else 0.0)
                return
            if self._redelivered.is_set():
                await self._take()
            owner.check()
            self._poll_control()
            steps = [step for step in due(owner.state, owner.now(), self._allowance()) if not self._is_under_way(step)]
            if steps:
                await self._carry_out(steps)
            else:
                await self._wait()
        owner.lease.ack()

    def _poll_control(self) -> None:
        """In a cluster a cancel can be heard before it can be read: read again, whether or not anything was heard."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self.on_control()

    async def _begin(self) -> bool:
        """Take the request: a new one in one write, any other after a look at its log. False: it is not ours."""
        owner = self.owner
        if owner.delivery.number == 1 and not owner.term and await owner.take_first():
            self.on_control()
            return True
        await owner.log.refresh()
        match await classify(owner):
            case Disposition.SETTLED:
                owner.lease.ack()
                return False
            case Disposition.STALE:
                owner.lease.drop()
                return False
            case Disposition.OURS:
                await self._take()
                return True

    async def _take(self) -> None:
        owner = self.owner
        if self._redelivered.is_set():
            self._redelivered.clear()
            await self._check_not_stale()
        has_lived_on = owner.term > 0 and owner.state.term == owner.term
        await owner.take()
        if has_lived_on:
            await owner.record_survival()
        self._controls_read = 0  # what was decided under an earlier term may not count
        if owner.state.answer is not None:
            return
        owner.check()
        unproductive = owner.state.unproductive_takes(owner.delivery.number)
        if unproductive >= MAX_UNPRODUCTIVE_TAKES:
            await refuse(self.owner, f"the request was taken {unproductive} times without any progress: poison")
            return
        self.on_control()
        owner.in_background(lambda: publish_again(owner))

    async def _check_not_stale(self) -> None:
        """A delivery that waited in our own socket while we hung may be older than the one its new owner holds."""
        owner = self.owner
        await owner.log.refresh()
        if owner.state.term != owner.term and owner.state.delivery > owner.delivery.number:
            raise Superseded

    async def _wait(self) -> None:
        """Until the log changes, a timer is due, or it is time to look without being told."""
        owner = self.owner
        until = next_time(owner.state)
        timeout = min(LOOK_SECONDS, owner.resources.lease_seconds)
        is_look = until is None or until - owner.now() > timeout
        if not is_look and until is not None:
            timeout = max(0.001, until - owner.now())
        if not await owner.log.changed(timeout) and is_look:
            await owner.log.refresh(from_leader=False)

    async def _await_redelivery(self) -> bool:
        """Silence, until the broker delivers the request to us again or it is somebody else's."""
        try:
            async with asyncio.timeout(self.owner.resources.lease_seconds * 3):
                await self._redelivered.wait()
        except TimeoutError:
            return False
        return True

    def _is_under_way(self, step: Step) -> bool:
        match step:
            case Refine(task_id=task_id):
                return task_id in self._refining
            case Expire(task_id=task_id):
                return task_id in self.owner.publishing  # nobody can have it yet: a full TASKS costs no strike
            case _:
                return False

    async def _carry_out(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case MakePlan():
                    await plan(self.owner)
                case DispatchTasks():
                    await self._dispatch(step)
                case Refine():
                    self._refine(step)
                case Expire():
                    await expire(self.owner, step)
                case GiveAnswer():
                    await give_answer(self.owner, step)
                case _:
                    assert_never(step)

    def _refine(self, step: Refine) -> None:
        """Beside the loop: a model that takes its time must hold up neither other tasks nor a cancel."""
        self._refining.add(step.task_id)
        self.owner.in_background(lambda: self._refine_beside(step))

    async def _refine_beside(self, step: Refine) -> None:
        try:
            await refine(self.owner, step)
        finally:
            self._refining.discard(step.task_id)
            self.owner.log.wake()

    async def _dispatch(self, step: DispatchTasks) -> None:
        plan_entry = self.owner.state.plan_entry
        assert plan_entry is not None
        pause = self._dispatched_at + PACE_SECONDS - time.monotonic()
        if pause > 0 and self.owner.state.in_flight and len(step.attempts) < plan_entry.in_flight // 4:
            await asyncio.sleep(pause)
            return  # more may be due by now
        self._dispatched_at = time.monotonic()
        await dispatch(self.owner, step)

    def _sees_unknown_kind(self) -> bool:
        """A newer supervisor wrote what we cannot read: leave the request to its like, while there is time."""
        return self.owner.log.unknown_kind is not None and self.owner.seconds_left() > 3 * UNKNOWN_KIND_DELAY_SECONDS

    def _allowance(self) -> Allowance:
        tokens = self.owner.resources.team.limits.task_tokens
        return Allowance() if tokens is None else Allowance(tokens=tokens)
