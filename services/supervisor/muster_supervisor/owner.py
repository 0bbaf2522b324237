"""The owner of a request: its lease, its term in the log, and the rule that nothing is written without both."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from muster_agent.models.port import Model
from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease
from muster_bus.log import RequestLog
from muster_protocol.errors import MusterError
from muster_protocol.fold import RequestState
from muster_protocol.messages import Answer, LogBody, PlanRecorded, Request, Taken, Usage
from muster_supervisor.decide import last_moment

log = logging.getLogger("muster.supervisor")


NOTE_SECONDS = 0.05  # a note takes a millisecond; a broker that is slower must not hold up an answer


class LeaseLost(Exception):
    """The broker may have given the request to somebody else: write nothing."""


class Superseded(Exception):
    """A later owner has taken the request."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a supervisor works with."""

    bus: Bus
    team: Team
    model: Model
    model_slots: asyncio.Semaphore  # held while planning, refining or composing, never while waiting
    lease_seconds: float


class Owner:
    """One supervisor's hold on one request."""

    def __init__(
        self, resources: Resources, request_id: str, request: Request, request_hash: str, delivery: Delivery
    ) -> None:
        self.resources = resources
        self.request = request
        self.request_hash = request_hash
        self.delivery = delivery
        self.log = RequestLog(resources.bus, request_id, delivery.headers)
        self.term = 0
        self.planning_error = ""  # why there is no plan yet
        self.spent = Usage()  # on plans that came to nothing: in no log entry, but paid
        self._deadline = delivery.time + (request.deadline_seconds or resources.team.limits.deadline_seconds)
        self.publishing: set[str] = set()  # tasks whose message is not stored yet
        self._background: set[asyncio.Task[None]] = set()
        self._broken: Exception | None = None

    @property
    def request_id(self) -> str:
        return self.log.request_id

    @property
    def state(self) -> RequestState:
        return self.log.state

    @property
    def deadline(self) -> float:
        """The log's, once it has one: a copy of the request that came later does not prolong it."""
        return self.state.deadline or self._deadline

    @property
    def bus(self) -> Bus:
        return self.resources.bus

    @property
    def lease(self) -> Lease:
        return self.delivery.lease

    def now(self) -> float:
        return self.bus.clock.now()

    def seconds_left(self) -> float:
        """Until work must end: the moment at which `due` says so."""
        return max(0.0, (last_moment(self.state) or self.deadline) - self.now())

    def check(self) -> None:
        """Raise unless the request is still ours, and nothing that is done beside the loop has broken."""
        if self._broken is not None:
            raise RuntimeError("what was done beside the loop broke") from self._broken
        if self.term and self.state.term != self.term:
            raise Superseded
        if not self.lease.is_held:
            raise LeaseLost

    async def take_first(self) -> bool:
        """Begin the first term of a request whose log is empty, in one write; False: the log, now read, is not."""
        if not self.lease.is_held:
            raise LeaseLost
        if not await self.log.compare_and_set(self._taken(), term=0):
            return False
        self.term = self.state.term
        return True

    async def take(self) -> None:
        """Begin a term: append `taken` and fold everything up to it. Start and takeover are the same."""
        if not self.lease.is_held:
            raise LeaseLost
        instance, delivery = self.bus.sender.instance, self.delivery
        message_id = f"{self.request_id}.taken.{instance}.{delivery.sequence}.{delivery.number}"
        self.term = await self.log.append(self._taken(), message_id=message_id)

    async def hand_back(self, delay_seconds: float) -> None:
        """End the term cleanly; the note tells a later reader that this take was not fruitless."""
        await self.append(self._taken(handed_back=True), f"{self.request_id}.back.{self.term}")
        self.lease.hand_back(delay_seconds)
        log.info("← request %s  handed back", self.request_id)

    async def record_survival(self) -> None:
        """Taken by us once more: we outlived the take before, so it was not in vain, and nothing here is poison."""
        before = self._taken(handed_back=True).model_copy(update={"delivery": self.delivery.number - 1})
        await self.log.append(before, message_id=f"{self.request_id}.lived.{self.term}")  # of no term: we still own it

    async def append(self, body: LogBody, message_id: str) -> int:
        """Write under our term; the fold ignores it if somebody else has the request by now."""
        self.check()
        return await self.log.append(body, message_id=message_id, term=self.term)

    async def compare_and_set(self, body: PlanRecorded | Answer) -> bool:
        self.check()
        return await self.log.compare_and_set(body, term=self.term)

    def in_background(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something that no step waits for; it ends with the term."""
        task = supervised(self._quietly(work), f"what is done beside {self.request_id}")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def finish_background(self) -> None:
        """Let what is being written land: an answer that meets it would be refused and written again."""
        if self._background:
            await asyncio.wait(self._background, timeout=NOTE_SECONDS)

    async def close(self) -> None:
        for in_background in self._background:
            in_background.cancel()
        await self.log.close()

    async def _quietly(self, work: Callable[[], Awaitable[None]]) -> None:
        """What cannot be written any more is not missed: the next owner finds out by itself."""
        try:
            await work()
        except (LeaseLost, Superseded) as end:
            log.debug("… request %s  not written: %s", self.request_id, type(end).__name__)
        except MusterError as error:
            log.warning("… request %s  not written: %s", self.request_id, error)
        except Exception as error:
            self._broken = error
            self.log.wake()
            raise

    def _taken(self, *, handed_back: bool = False) -> Taken:
        return Taken(
            instance=self.bus.sender.instance,
            delivery=self.delivery.number,
            team=self.resources.team.team,
            deadline=self.deadline,
            request_hash=self.request_hash,
            request_sequence=self.delivery.sequence,
            handed_back=handed_back,
        )
