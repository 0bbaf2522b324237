"""The supervisor: pulls requests of its team and attends each of them until it is answered."""

import asyncio
import logging
import time

from muster_agent.models.port import Model
from muster_agent.team.schema import Team
from muster_bus.connection import Bus, Incoming
from muster_bus.lease import Delivery
from muster_bus.log import RequestLog
from muster_bus.pull import Pull
from muster_bus.reports import Source
from muster_bus.topology import ack_wait_of, longest_deadline, supervisor_consumer
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid, MusterError
from muster_protocol.messages import Answer, AnswerStatus, Request, Taken
from muster_supervisor.disposition import report_reuse
from muster_supervisor.owner import Owner, Resources
from muster_supervisor.run import MAX_UNPRODUCTIVE_TAKES, Run

log = logging.getLogger("muster.supervisor")

STARTING = 64  # requests that are being taken at once; one that waits for its tasks takes no slot
MODEL_SLOTS = 16  # plans and answers that are being composed at once


class Supervisor:
    """Attends the requests of one team."""

    def __init__(self, bus: Bus, team: Team, model: Model) -> None:
        self.bus = bus
        self._team = team
        self._model = model
        self._runs: dict[str, Run] = {}
        self._supervising: set[asyncio.Task[None]] = set()
        self._pull: Pull | None = None
        self._resources: Resources | None = None
        self._longest_deadline = 0.0

    @property
    def last_turn_at(self) -> float:
        return self._pull.last_turn_at if self._pull is not None else time.monotonic()

    async def start(self) -> None:
        consumer = supervisor_consumer(self._team.team)
        lease_seconds = await ack_wait_of(self.bus, "REQUESTS", consumer)
        self._longest_deadline = await longest_deadline(self.bus)
        self._resources = Resources(self.bus, self._team, self._model, asyncio.Semaphore(MODEL_SLOTS), lease_seconds)
        await self.bus.subscribe(subjects.ALL_CONTROL, self._on_control)
        self.bus.on_reconnect(self._on_reconnect)
        self._pull = Pull(self.bus, "REQUESTS", [consumer], STARTING, lease_seconds, self._take, self.note_returned)
        await self._pull.start()
        log.info("ready: team %s, model %s", self._team.team, self._model.name)

    async def stop(self, grace_seconds: float) -> None:
        """Hand every request back at its next step; what a step holds up is cancelled."""
        if self._pull is None:
            return
        starting = await self._pull.close()
        for run in self._runs.values():
            run.stop()
        working = {*starting, *self._supervising}
        if working:
            _, late = await asyncio.wait(working, timeout=grace_seconds / 2)
            held_up = list(self._runs.values())
            for task in late:
                task.cancel()
            await asyncio.gather(*(run.give_up(grace_seconds / 4) for run in held_up))
            if late:
                await asyncio.wait(late, timeout=grace_seconds / 4)  # those that nobody attends yet are handed back
        await self.bus.flush()
        self._pull.stop()

    async def _take(self, delivery: Delivery) -> None:
        """Settle what needs no attendance; attend the rest until it waits for others."""
        try:
            run = await self._start_run(delivery)
        except asyncio.CancelledError:
            await self.note_returned(delivery)  # stopped before anybody attends it: nothing waits for the lease
            delivery.lease.hand_back()
            raise
        if run is not None:
            await run.slot_released.wait()

    async def _start_run(self, delivery: Delivery) -> Run | None:
        """The attendance of what is to be attended."""
        request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
        request_hash = h.request_hash(delivery.subject, delivery.headers, delivery.data)
        if await self._handle_duplicate(request_id, delivery, request_hash):
            return None
        request = await self._parse(delivery, request_id, request_hash)
        if request is None:
            return None
        if await self._handle_duplicate(request_id, delivery, request_hash):
            return None  # a copy was quicker while the body was fetched
        assert self._resources is not None
        log.info("→ request %s  delivery %d", request_id, delivery.number)
        run = Run(Owner(self._resources, request_id, request, request_hash, delivery))
        self._runs[request_id] = run
        task = asyncio.get_running_loop().create_task(self._supervise(request_id, run))
        self._supervising.add(task)
        task.add_done_callback(self._supervising.discard)
        return run

    async def _parse(self, delivery: Delivery, request_id: str, request_hash: str) -> Request | None:
        """What is asked, or None after it was refused."""
        if await self._is_poison(request_id, delivery, request_hash):
            return None
        try:
            return self._checked(Request.read(await self._body(delivery)))
        except Invalid as reason:
            await self._refuse(delivery, request_id, request_hash, str(reason))
            return None

    async def _is_poison(self, request_id: str, delivery: Delivery, request_hash: str) -> bool:
        """Counted before the body is read, because reading it may be what kills."""
        if delivery.number <= MAX_UNPRODUCTIVE_TAKES:
            return False
        known = RequestLog(self.bus, request_id)
        await known.refresh(from_leader=True)
        unproductive = known.state.unproductive_takes(delivery.number)
        if known.state.answer is not None or unproductive < MAX_UNPRODUCTIVE_TAKES + bool(known.state.term):
            return False  # whoever took it before got past the body: `Run` counts, and keeps what is done
        reason = f"the request was taken {unproductive} times without any progress: poison"
        await self._refuse(delivery, request_id, request_hash, reason)
        return True

    async def note_returned(self, delivery: Delivery) -> None:
        """Handed back before anybody looked at it: noted, or it would count as a take that came to nothing."""
        request_id = h.request_id_of(delivery.headers, delivery.sequence, delivery.data)
        note = Taken(
            instance=self.bus.sender.instance,
            delivery=delivery.number,
            team=self._team.team,
            deadline=delivery.time,
            request_hash=h.request_hash(delivery.subject, delivery.headers, delivery.data),
            request_sequence=delivery.sequence,
            handed_back=True,
        )
        message_id = f"{request_id}.bounced.{note.instance}.{delivery.sequence}.{delivery.number}"
        try:
            await self.bus.store(
                subjects.results(request_id), note, request_id=request_id, message_id=message_id, give_up_after=1.0
            )
        except MusterError as error:
            log.warning("← request %s  hand-back not noted: %s", request_id, error)

    async def _supervise(self, request_id: str, run: Run) -> None:
        try:
            await run.supervise()
        except Exception:
            # The lease runs out and the request is taken again; if that never helps it is answered as poison.
            log.exception("the attendance of %s broke", request_id)
            run.owner.lease.drop()
        else:
            run.owner.lease.drop()  # settled, or not ours; kept alive without a run it would never come again
        finally:
            self._runs.pop(request_id, None)

    async def _handle_duplicate(self, request_id: str, delivery: Delivery, request_hash: str) -> bool:
        """Something that this process attends already came once more."""
        run = self._runs.get(request_id)
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

    def _checked(self, request: Request) -> Request:
        """A log must outlive its request, also when that was not submitted by our own client."""
        if (request.deadline_seconds or 0.0) > self._longest_deadline:
            text = (
                f"{request.deadline_seconds:g} s are more than the {self._longest_deadline:g} s that are allowed here"
            )
            raise Invalid(text, "deadline_seconds")
        return request

    async def _refuse(self, delivery: Delivery, request_id: str, request_hash: str, reason: str) -> None:
        """Accepted by the broker, so it gets an answer: that it is invalid, and why."""
        await self.bus.report(reason, Source.of(delivery), request_id=request_id)
        known = RequestLog(self.bus, request_id)
        await known.refresh(from_leader=True)
        while known.state.answer is None and known.state.request_hash in ("", request_hash):  # again after a lost write
            answer = Answer(
                request_id=request_id,
                status=AnswerStatus.FAILED,
                text=f"The request is invalid. {reason}",
                gaps=(reason,),
                request_hash=request_hash,
            )
            await known.compare_and_set(answer, term=known.state.term)
        delivery.lease.ack()

    async def _body(self, delivery: Delivery) -> bytes:
        """On requests alone a missing sender is `anonymous`: they come from anywhere."""
        headers = delivery.headers or {}
        if h.SENDER in headers:
            h.require_sender(headers)
        if h.KIND in headers:
            h.require_kind(headers, {Request.kind: Request})
        return await self.bus.body_of(delivery.headers, delivery.data)

    def _on_control(self, message: Incoming) -> None:
        run = self._runs.get(subjects.last_token(message.subject))
        if run is not None and not h.is_owner((message.headers or {}).get(h.SENDER, "")):
            run.on_control()

    async def _on_reconnect(self) -> None:
        for run in self._runs.values():
            run.on_control()
