"""What the streams and the traces say in the end: read by the checker, and by nobody through the services' own fold."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from muster_bus.broker.queues import request_queue, task_queue
from muster_bus.buckets.conflicts import page_of_conflicts
from muster_bus.connection import Bus
from muster_bus.log import entry_of
from muster_bus.read_stream import Raw, read_subject
from muster_bus.receive import Opened, check_headers
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.conflict import Conflict
from muster_protocol.errors import Invalid
from muster_protocol.fold import Entry
from muster_protocol.messages import (
    LOG_KINDS,
    Abort,
    Answer,
    ConflictFound,
    ErrorReport,
    LogBody,
    PlanRecorded,
    Reserved,
    Result,
    ResultStatus,
    Taken,
)
from muster_testing.backlog import Backlog, backlog

QUEUES = [request_queue("default"), *(task_queue([tag]) for tag in ("scripted", "other", "second"))]
MAX_CONFLICTS = 100_000


@dataclass(frozen=True, slots=True)
class Trace:
    """One step of one execution, written by the role itself."""

    what: str
    request: str
    task: str
    attempt: int
    time: float
    process: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A side of an attempt was told to stop."""

    key: tuple[str, str, int]  # request, task, attempt
    worker: str
    delivery: int
    message: int
    at: float


@dataclass(slots=True)
class Log:
    """One request's log, judged by the order of its entries alone."""

    request_id: str
    entries: list[Entry] = field(default_factory=list[Entry])
    plans: list[Entry] = field(default_factory=list[Entry])  # of an owner whose term it was
    answers: list[Entry] = field(default_factory=list[Entry])  # likewise
    reserved: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    results: dict[tuple[str, int], Entry] = field(default_factory=dict[tuple[str, int], Entry])  # the first of each
    successes: dict[str, Entry] = field(default_factory=dict[str, Entry])  # of each task the first that a worker stored

    @property
    def answer(self) -> Answer | None:
        body = self.answers[0].body if self.answers else None
        return body if isinstance(body, Answer) else None

    @property
    def answered_at(self) -> float:
        return self.answers[0].time

    def finished(self, task: str, attempt: int) -> Entry | None:
        """The first entry after which nobody may begin this attempt: its result, or a success of its task."""
        settling = [self.results.get((task, attempt)), self.successes.get(task)]
        found = (entry for entry in settling if entry is not None)
        return min(found, key=lambda entry: entry.sequence, default=None)


def judged(request_id: str, entries: list[Entry]) -> Log:
    """Sort the entries by what they count for."""
    log = Log(request_id, entries)
    term = 0
    for entry in entries:
        body = entry.body
        is_owner = h.is_owner(entry.sender)
        if isinstance(body, Taken):
            term = entry.sequence if is_owner and not body.handed_back else term
        elif isinstance(body, Result) and (not is_owner or entry.term == term):
            _count_result(log, entry, body)
        elif is_owner and entry.term == term:
            _count_owner(log, entry)
    return log


def _count_result(log: Log, entry: Entry, body: Result) -> None:
    attempt = (body.task_id, body.attempt)
    if body.status is ResultStatus.CANCELLED and not h.is_owner(entry.sender):
        return  # what a worker had spent that was told to stop
    if attempt in log.reserved and not log.answers:
        log.results.setdefault(attempt, entry)
        if body.status is ResultStatus.DONE and not h.is_owner(entry.sender):
            log.successes.setdefault(body.task_id, entry)


def _count_owner(log: Log, entry: Entry) -> None:
    match entry.body:
        case PlanRecorded():
            log.plans.append(entry)
        case Answer():
            log.answers.append(entry)
        case Reserved(attempts=attempts):
            for attempt in attempts:
                log.reserved.setdefault((attempt.task_id, attempt.attempt), entry.time)
        case _:
            return


@dataclass(slots=True)
class Evidence:
    """All that is left of a run."""

    logs: dict[str, Log]
    errors: list[ErrorReport]
    traces: list[Trace]
    backlogs: dict[str, Backlog | None]
    stored: dict[str, list[str]]  # messages left in each queue's stream
    conflicts: list[Conflict] = field(default_factory=list[Conflict])
    stops: list[Stop] = field(default_factory=list[Stop])
    announced: Counter[tuple[str, str, int]] = field(default_factory=Counter[tuple[str, str, int]])  # conflicts

    @property
    def entries(self) -> int:
        return sum(len(log.entries) for log in self.logs.values())


class Reader:
    """Reads the logs as they grow, and everything else at the end."""

    def __init__(self, bus: Bus, folder: Path) -> None:
        self._bus = bus
        self._folder = folder
        self._last = 0
        self._entries: dict[str, list[Entry]] = defaultdict(list)
        self.raws: dict[str, list[Raw]] = defaultdict(list)
        self.beside: dict[str, list[Raw]] = defaultdict(list)  # events and orders, read at the end

    async def logs(self) -> dict[str, Log]:
        """Every log as it is now; what cannot be read is left out."""
        for raw in await read_subject(self._bus.nc, "results.*", self._last, from_leader=True):
            self._last = raw.sequence
            request_id = subjects.last_token(raw.subject)
            self.raws[request_id].append(raw)
            try:
                self._entries[request_id].append(entry_of(raw, await self._opened(raw)))
            except Invalid:
                continue
        return {request_id: judged(request_id, entries) for request_id, entries in self._entries.items()}

    async def _opened(self, raw: Raw) -> Opened[LogBody]:
        """As the gate opens it, but nothing is reported: looking must not change what is seen."""
        sender, kind = check_headers(raw, LOG_KINDS)
        reference = raw.headers.get(h.BODY_REF)
        return Opened(sender, kind.read(raw.data if reference is None else await self._bus.bodies.get(reference)))

    async def backlogs(self) -> dict[str, Backlog | None]:
        return {queue.consumers[0]: await backlog(self._bus, queue) for queue in QUEUES}

    async def errors(self) -> list[ErrorReport]:
        """The reports; garbage that somebody put on `errors` is none."""
        found: list[ErrorReport] = []
        for raw in await read_subject(self._bus.nc, subjects.ERRORS, from_leader=True):
            try:
                found.append(ErrorReport.read(raw.data))
            except Invalid:
                continue
        return found

    async def everything(self) -> Evidence:
        stored = {name: await self._left(f"{name.lower()}.*") for name in ("REQUESTS", "TASKS")}
        conflicts = await self.conflicts()
        logs, errors, backlogs = await self.logs(), await self.errors(), await self.backlogs()
        stops, announced = await self._stops(), await self._announced()
        return Evidence(logs, errors, self._traces(), backlogs, stored, conflicts, stops, announced)

    async def _left(self, subject: str) -> list[str]:
        left = await read_subject(self._bus.nc, subject, from_leader=True)
        return [
            f"#{raw.sequence} {raw.headers.get(h.MESSAGE_ID, '')} of {raw.time:.3f} on {raw.subject}" for raw in left
        ]

    async def conflicts(self) -> list[Conflict]:
        return (await page_of_conflicts(self._bus, MAX_CONFLICTS)).records

    async def _beside(self, subject: str) -> list[Raw]:
        """Events or orders, kept for whoever looks into a violation."""
        found = await read_subject(self._bus.nc, subject, from_leader=True)
        for raw in found:
            self.beside[subjects.last_token(raw.subject)].append(raw)
        return found

    async def _stops(self) -> list[Stop]:
        """Whom coordinators told to stop; what nobody can read, garbage has put there."""
        found: list[Stop] = []
        for raw in await self._beside("control.*"):
            if raw.headers.get(h.KIND) != Abort.kind:
                continue
            try:
                order = Abort.read(raw.data)
            except Invalid:
                continue
            if (side := order.side) is not None:
                found += [
                    Stop((order.request_id, task, attempt), side.worker, side.delivery, side.task_sequence, raw.time)
                    for task, attempt in order.attempts
                ]
        return found

    async def _announced(self) -> Counter[tuple[str, str, int]]:
        """How many events there are about each conflict."""
        found: Counter[tuple[str, str, int]] = Counter()
        for raw in await self._beside("events.*"):
            if raw.headers.get(h.KIND) == ConflictFound.kind:
                try:
                    event = ConflictFound.read(raw.data)
                except Invalid:
                    continue
                found[event.request_id, event.task_id, event.attempt] += 1
        return found

    def _traces(self) -> list[Trace]:
        path = self._folder / "trace.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [Trace(**json.loads(line)) for line in lines]
