"""The owner of a request: its lease and its term in the log; nothing is written without both."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from muster_agent.budget import Meter
from muster_agent.limiting.gates import Gates
from muster_agent.models.port import Model
from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease
from muster_bus.log import RequestLog
from muster_bus.redact import KNOWN
from muster_protocol import headers as h
from muster_protocol.errors import MusterError
from muster_protocol.fold import Entry, RequestState, last_moment
from muster_protocol.messages import Answer, LogBody, PlanRecorded, Request, Result, Taken, Usage
from muster_protocol.sender import Origin
from muster_protocol.subjects import Priority
from muster_supervisor.calling.callbacks import Callbacks
from muster_supervisor.choosing.breaking import Breakers
from muster_supervisor.choosing.measuring import Measuring
from muster_supervisor.choosing.model_slots import ModelSlots
from muster_supervisor.choosing.unserved import tags_in
from muster_supervisor.choosing.window import Windows

log = logging.getLogger("muster.supervisor")

LOOKED_AT, MAX_ASKED = 10_000, 200  # characters of what was asked; cut after a secret is taken out
BACKGROUND_SECONDS = 0.05  # an entry is written in a millisecond; a slower broker must not delay the answer


class Placed(NamedTuple):
    """An attempt, and where its message lies in TASKS."""

    task_id: str
    attempt: int
    sequence: int


class LeaseLost(Exception):
    """The broker may have given the request to another supervisor: write nothing."""


class Superseded(Exception):
    """Another supervisor has taken the request."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What all requests of a supervisor share."""

    bus: Bus
    team: Team
    model: Model
    model_slots: ModelSlots  # held while the model is called, never while waiting
    lease_seconds: float
    measuring: Measuring
    longest_deadline: float  # with what waiting for people may add: half the age of the logs
    breakers: Breakers
    callbacks: Callbacks
    windows: Windows = field(default_factory=Windows)
    gates: Gates | None = None  # None: no limits of providers are kept


class Owner:
    """One supervisor's hold on one request."""

    def __init__(
        self, resources: Resources, request_id: str, request: Request | None, request_hash: str, delivery: Delivery
    ) -> None:
        self.resources = resources
        self.request = request  # None: only its log is known, its own message is gone
        self.request_hash = request_hash
        self.delivery = delivery
        self.trace = resources.bus.tracing.request(request_id, delivery.headers)
        self.log = RequestLog(resources.bus, request_id, self.trace.carrier, self._on_folded)
        self._measured_up_to = 0
        # The tags of so many tasks, as far as people have spoken.
        self._tags: tuple[tuple[int, int], frozenset[str]] = ((0, 0), frozenset())
        self.turns: Counter[tuple[str, ...]] = Counter()  # of roles that match the same tasks
        self.term = 0
        self.planning_error = ""  # why there is no plan yet
        self.spent = Usage()  # on plans that were refused: in no log entry, but paid
        seconds = request.deadline_seconds if request is not None else None
        self._deadline = delivery.time + (seconds or resources.team.limits.deadline_seconds)
        self.has_answered = False  # this process wrote the answer itself
        self.may_have_conflicts = False  # a coordinator has written a record about the request
        self.conflicts = 0  # that are listed, when the answer is given
        self.publishing: set[str] = set()  # tasks whose message is not stored yet
        self.unnoted: deque[tuple[float, list[Placed]]] = deque()  # that are stored, and when that is to be noted
        self.is_workflow_new = False  # its span was just exported: the first tasks wait until it is out
        self.meters: dict[tuple[int, str], Meter] = {}  # of our own model calls, by term and purpose
        self.revising: set[str] = set()  # tasks whose next attempt is being prepared
        self.growing: set[str] = set()  # causes for which a model is asked by what the plan is to grow
        self.told_to_stop: set[tuple[str, int, int | None]] = set()  # attempts nobody waits for, and their messages
        self.is_ending = asyncio.Event()  # the log says that somebody has cancelled the request
        self.copying = asyncio.Lock()  # held while what people said is copied into the log
        self._background: set[asyncio.Task[None]] = set()
        self._background_error: Exception | None = None

    @property
    def request_id(self) -> str:
        return self.log.request_id

    @property
    def state(self) -> RequestState:
        return self.log.state

    @property
    def deadline(self) -> float:
        """The log's, once it has one: a second copy of the request does not extend it."""
        return self.state.deadline or self._deadline

    @property
    def bus(self) -> Bus:
        return self.resources.bus

    @property
    def lease(self) -> Lease:
        return self.delivery.lease

    @property
    def priority(self) -> Priority:
        """The log's, once it has a plan."""
        if self.state.plan_entry is not None:
            return self.state.plan_entry.priority
        return "normal" if self.request is None else self.request.priority

    @property
    def lane(self) -> Priority:
        """Where its tasks are given out: a team that has turned its lanes off gives out all in the normal one."""
        return "normal" if self.resources.team.priorities is None else self.priority

    def model_slot(self) -> AbstractAsyncContextManager[None]:
        """A slot of the supervisor's model, for as long as it is called."""
        return self.resources.model_slots.held(self.priority)

    def now(self) -> float:
        return self.bus.clock.now()

    def seconds_left(self) -> float:
        """How long work may go on: until the moment at which `due` ends it."""
        return max(0.0, (last_moment(self.state) or self.deadline) - self.now())

    def open_of(self, placed: Iterable[Placed]) -> list[Placed]:
        """Those without a result, or taken away by a person: of the others nobody looks for the message."""
        tasks, withdrawn = self.state.tasks, self.state.withdrawn
        return [
            one for one in placed if tasks[one.task_id].attempts[one.attempt - 1].result is None or one[:2] in withdrawn
        ]

    def unnoted_messages(self) -> list[int]:
        """Where the messages lie of which the log does not tell yet."""
        return [one.sequence for _, placed in self.unnoted for one in self.open_of(placed)]

    def tags(self) -> frozenset[str]:
        """All tags on which its tasks can be given out."""
        known = len(self.state.tasks), self.state.controls_seen  # a person may give a task to another role
        if self._tags[0] != known:
            self._tags = known, tags_in(self.state)
        return self._tags[1]

    def check(self) -> None:
        """Raise unless the request is still ours and no background task has failed."""
        if self._background_error is not None:
            raise RuntimeError("a background task failed") from self._background_error
        if self.term and self.state.term != self.term:
            raise Superseded
        if not self.lease.is_held:
            raise LeaseLost

    async def is_answered(self) -> bool:
        """Whether the log has an answer for certain: ours, or one that was read. A live message may be forged."""
        if self.state.answer is not None and not self.has_answered:
            await self.log.read_again()
        return self.state.answer is not None

    def inherit(self) -> None:
        """Go on by the log alone: what our message holds is not the body that counts."""
        self.request, self.request_hash = None, self.state.request_hash

    async def take_first(self) -> bool:
        """Begin the first term of a request in one write; False: its log is not empty, and was read."""
        if not self.lease.is_held:
            raise LeaseLost
        if not await self.log.compare_and_set(self._taken(), term=0):
            return False
        self.term = self.state.term
        return self.term > 0  # else its bytes changed on the wire, and nobody can read it

    async def take(self) -> None:
        """Begin a term: append `taken` and fold everything up to it, at the start as in a takeover."""
        if not self.lease.is_held:
            raise LeaseLost
        self.term = await self.log.append(self._taken())

    async def hand_back(self, delay_seconds: float) -> None:
        """End the term and return the request; the entry says that this take does not count as unproductive."""
        await self.append(self._taken(handed_back=True))
        self.lease.hand_back(delay_seconds)
        log.info("← request %s  handed back", self.request_id)

    async def record_survival(self) -> None:
        """Record that others were at work, so that the takes before this one do not count as unproductive."""
        before = self._taken(handed_back=True).model_copy(update={"delivery": self.delivery.number - 1})
        # Without a term: under ours it would end our term.
        await self.log.append(before)

    def origin(self) -> Origin:
        """We, under our term, as the writer of a message."""
        return self.bus.origin(self.request_id, term=self.term)

    async def append(self, body: LogBody) -> int:
        """Write under our term; the fold ignores the entry if another supervisor has the request by now."""
        self.check()
        return await self.log.append(body, term=self.term)

    async def compare_and_set(self, body: PlanRecorded | Answer) -> bool:
        """Write under our term if nothing came after what was read; False: something did, and was read."""
        self.check()
        return await self.log.compare_and_set(body, term=self.term)

    def in_background(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run something that no step waits for; it is cancelled when the run ends."""
        task = supervised(self._run_background(work), f"request {self.request_id}: a background task")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def finish_background(self) -> None:
        """Wait a moment for writes under way: each of them would make an answer lose its compare-and-set."""
        if self._background:
            await asyncio.wait(self._background, timeout=BACKGROUND_SECONDS)

    async def close(self) -> None:
        """Cancel what runs in the background and stop following the log."""
        for task in self._background:
            task.cancel()
        await self.log.close()

    async def _run_background(self, work: Callable[[], Awaitable[None]]) -> None:
        """Log what could not be written, since the next owner will do it; any other error ends the run."""
        try:
            await work()
        except (LeaseLost, Superseded) as end:
            log.debug("… request %s: a background task ended: %s", self.request_id, type(end).__name__)
        except MusterError as error:
            log.warning("… request %s: a background task could not write: %s", self.request_id, error)
        except Exception as error:
            self._background_error = error
            self.log.wake()
            raise

    def _on_folded(self, entry: Entry) -> None:
        """Measure what comes under our term, once: what came before was its owner's to measure."""
        if self.state.cancelled is not None:
            self.is_ending.set()
        result = entry.body
        if type(result) is not Result or not 0 < self.term == self.state.term or entry.sequence <= self._measured_up_to:
            return
        self._measured_up_to = entry.sequence
        if entry.sequence > self.term and self.state.is_counted(result):
            self.resources.measuring.observe(result, entry.time)
            model = model_of(self.state, result)
            self.resources.breakers.observe(result, entry.time, by_owner=h.is_owner(entry.sender), model=model)

    def _taken(self, *, handed_back: bool = False) -> Taken:
        return Taken(
            instance=self.bus.sender.instance,
            delivery=self.delivery.number,
            team=self.resources.team.team,
            deadline=self.deadline,
            request_hash=self.request_hash,
            request_sequence=self.delivery.sequence,
            stored_at=self.delivery.time,
            handed_back=handed_back,
            asked="" if self.request is None else KNOWN(self.request.asked[:LOOKED_AT])[:MAX_ASKED],
            asked_by=h.sender_of(self.delivery.headers),
        )


def model_of(state: RequestState, result: Result) -> str | None:
    """The model that an attempt was to use in place of its role's own."""
    task = state.tasks[result.task_id]
    return task.attempts[result.attempt - 1].model or task.spec.model
