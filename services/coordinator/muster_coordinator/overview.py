"""The overview: one summary per request, followed entry by entry within bounds. Pure.

Each entry names the one before it on its subject, so a summary knows when it has missed something; then its log is
noted as unread, to be read on. So nothing here depends on having been up. What a summary says comes from
  headers             kind, sender and term of every entry; task, attempt, status and cost of results; what people
                      are asked and decide; the answer's status and seconds
  bodies              team, owner and what was asked (`taken`), and which attempts there are (`reserved`)
  the fold            the tasks of a request that is too large to be followed: see MAX_TASKS
`task_counts` says how tasks are counted. `tokens` and `usd` are those of every result, also of a second one or one
that came after the answer, as in the fold; what planning, refining and composing cost is not in them.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from muster_coordinator.header_numbers import number, real
from muster_coordinator.metrics import ResultNumbers
from muster_coordinator.task_counts import NO_TASKS, TaskCounts, TaskTally, counts_of
from muster_protocol import headers as h
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState
from muster_protocol.messages import Answer, Decision, Message, PlanRecorded, Question, Reserved, Result, Taken
from muster_protocol.status_words import ENDED, RequestStatus, open_status
from muster_protocol.subjects import is_id

M = TypeVar("M", bound=Message)

MAX_OPEN = 10_000
MAX_ENDED = 1_000
MAX_STRAYS = 10_000
MAX_TASKS = 200_000  # of all open requests, about thirty megabytes; beyond it the largest is counted from its log
READ_KINDS = frozenset(
    {Taken.kind, Reserved.kind, Question.kind, Decision.kind}
)  # their bodies are read, of all others only headers


@dataclass(slots=True)
class Summary:
    """A request at a glance."""

    id: str
    team: str = ""
    ended: RequestStatus | None = None
    has_plan: bool = False
    is_cancelled: bool = False
    questions: dict[str, bool] = field(default_factory=dict[str, bool])  # that are open, and which is about the plan
    asked: str = ""  # the beginning of it
    asked_by: str = ""  # the sender of the request; empty when nobody said
    asked_at: float = 0.0  # broker time; 0: not known yet
    reason: str = ""  # of those that ended, once their log was read for it
    tokens: int = 0
    usd: float = 0.0
    seconds: float | None = None  # from taken to answered
    owner: str = ""
    term: int = 0
    last_sequence: int = 0
    tally: TaskTally | None = field(default_factory=TaskTally)  # None: the tasks are not followed, or no more
    last_counts: TaskCounts = NO_TASKS  # where there is no tally

    @property
    def status(self) -> RequestStatus:
        """By headers: that no task is left to wait for is seen by whoever folds the log, as `queries` does."""
        if self.ended is not None:
            return self.ended
        return open_status(
            has_owner=bool(self.owner),
            has_plan=self.has_plan,
            is_ending=self.is_cancelled,
            is_asking=any(self.questions.values()),
        )

    def counts(self) -> TaskCounts:
        return self.last_counts if self.tally is None else self.tally.counts()

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "team": self.team,
            "asked": self.asked,
            "asked_by": self.asked_by,
            "asked_at": self.asked_at or None,
            "status": self.status.value,
            "reason": self.reason,
            **self.counts()._asdict(),
            "tokens": self.tokens,
            "usd": round(self.usd, 6),
            "seconds": self.seconds,
            "owner": self.owner,
        }


class Overview:
    """The requests that are open, the last ones that ended, and those with something unread."""

    def __init__(self, max_open: int = MAX_OPEN, max_ended: int = MAX_ENDED, max_tasks: int = MAX_TASKS) -> None:
        self._max_open, self._max_ended, self._max_tasks = max_open, max_ended, max_tasks
        self._tasks = 0  # in all tallies
        self._too_large: dict[str, int] = {}  # requests without a tally, and up to where their log was counted
        self.open: dict[str, Summary] = {}
        self.ended: dict[str, Summary] = {}
        self.unread: dict[str, int] = {}  # up to which sequence at least; the one that waits longest is first
        self.numbers = ResultNumbers()
        self._strays: dict[str, int] = {}  # last sequence on subjects that no owner has written on

    def get(self, request_id: str) -> Summary | None:
        return self.open.get(request_id) or self.ended.get(request_id)

    def newest(self) -> list[Summary]:
        """Open ones first, then those that ended; of each first the one that was asked last."""
        newest_first = [[*reversed(found.values())] for found in (self.open, self.ended)]
        return [summary for found in newest_first for summary in sorted(found, key=_age)]

    def last_of(self, request_id: str) -> int:
        """The last sequence that was counted, or found to be of no use."""
        summary = self.get(request_id)
        return self._strays.get(request_id, 0) if summary is None else summary.last_sequence

    def expect(self, request_id: str, team: str = "") -> None:
        """A request is known to be submitted: its log is to be read, if it has one."""
        summary = self.get(request_id)
        if summary is None:
            summary = self._new(request_id)
            self.unread.setdefault(request_id, 0)
        summary.team = summary.team or team

    def mark_all_stale(self) -> None:
        """The connection was lost for a while: every open log is to be read on."""
        self.unread = dict.fromkeys(self.open, 0) | self.unread

    def note_unread(self, request_id: str, sequence: int) -> None:
        """There is an entry that was not counted, unless it was."""
        if sequence > self.last_of(request_id) and is_id(request_id):
            self.unread[request_id] = max(sequence, self.unread.get(request_id, 0))

    def skip(self, request_id: str, sequence: int) -> None:
        """An entry that changes nothing here: it is read, and that is all."""
        summary = self.get(request_id)
        if summary is not None:
            summary.last_sequence = max(sequence, summary.last_sequence)
            return
        if request_id not in self._strays and len(self._strays) >= MAX_STRAYS:
            del self._strays[next(iter(self._strays))]
        self._strays[request_id] = max(sequence, self._strays.get(request_id, 0))

    def count(self, request_id: str, sequence: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Take one entry in; older ones than the last change nothing. Whether it is a worker's result that counts."""
        kind = headers.get(h.KIND)
        is_owner = h.is_owner(headers.get(h.SENDER, ""))
        summary = self.get(request_id)
        if summary is None:
            if not is_owner or kind not in (Taken.kind, Answer.kind):
                self.skip(request_id, sequence)
                return False  # a log begins with its owner; anything else is a stray message
            summary = self._new(request_id)
        if sequence <= summary.last_sequence:
            return False
        summary.last_sequence = sequence
        if is_owner:
            self._count_owner(summary, kind, headers, body)
            return False
        return kind == Result.kind and self._count_result(summary, headers, is_owner=False)

    def counts(self) -> dict[str, int]:
        """Requests by status; of the ended ones those that are still remembered."""
        statuses = Counter(summary.status for summaries in (self.open, self.ended) for summary in summaries.values())
        return {**dict.fromkeys(RequestStatus, 0), **statuses}

    def recount(self, state: RequestState) -> None:
        """Take the tasks' counts from the fold, for a request that is too large to be followed."""
        summary = self.get(state.request_id)
        if summary is None or summary.id not in self._too_large:
            return
        if state.tasks:  # else the log is too old to be kept, and the last counts stand
            summary.last_counts = counts_of(state)
        self._too_large[summary.id] = max(state.last_sequence, summary.last_sequence)
        if state.answer is not None:
            del self._too_large[summary.id]  # nothing after the answer counts

    def _count_owner(self, summary: Summary, kind: str | None, headers: Mapping[str, str], body: bytes) -> None:
        if summary.id in self.ended:
            return
        term = number(headers.get(h.TERM, "0"))
        if kind == Taken.kind:
            _take(summary, term, body)
        elif term != summary.term:
            return  # its term is over
        elif kind == Result.kind:
            self._count_result(summary, headers, is_owner=True)
        elif kind == PlanRecorded.kind:
            summary.has_plan = True
        elif kind == Decision.kind:
            _decide(summary, headers)
        elif kind == Question.kind:
            summary.questions.setdefault(headers.get(h.QUESTION, ""), h.APPROVAL in headers)
        elif kind == Reserved.kind:
            self._reserve(summary, body)
        elif kind == Answer.kind:
            self._end(summary, headers)

    def _count_result(self, summary: Summary, headers: Mapping[str, str], *, is_owner: bool) -> bool:
        is_counted = False
        if summary.tally is not None:
            attempt = number(headers.get("attempt", ""))
            status = headers.get("status", "")
            is_counted = summary.tally.add_result(headers.get("task", ""), attempt, status, by_owner=is_owner)
        summary.tokens += number(headers.get("tokens", "0"))
        summary.usd += real(headers.get("usd", "0"))
        self.numbers.add(headers)
        return is_counted

    def _reserve(self, summary: Summary, body: bytes) -> None:
        tally, reserved = summary.tally, _read(Reserved, body)
        if tally is None or reserved is None:
            return
        self._tasks -= len(tally)
        tally.reserve(reserved)
        self._tasks += len(tally)
        if self._tasks > self._max_tasks:
            largest = max(self.open.values(), key=lambda found: 0 if found.tally is None else len(found.tally))
            self._drop_tally(largest)
            self._too_large[largest.id] = 0

    def _drop_tally(self, summary: Summary) -> None:
        """Keep the numbers, not the tasks."""
        if summary.tally is not None:
            self._tasks -= len(summary.tally)
            summary.last_counts, summary.tally = summary.tally.counts(), None

    def _new(self, request_id: str) -> Summary:
        if len(self.open) >= self._max_open:
            self._forget(self.open)
        self._strays.pop(request_id, None)
        summary = self.open[request_id] = Summary(request_id)
        return summary

    def _end(self, summary: Summary, headers: Mapping[str, str]) -> None:
        summary.ended = _ended(headers.get("status", ""))
        summary.seconds = real(headers.get("seconds", "0"))
        self._drop_tally(summary)
        self.open.pop(summary.id, None)
        if len(self.ended) >= self._max_ended:
            self._forget(self.ended)
        self.ended[summary.id] = summary

    def _forget(self, summaries: dict[str, Summary]) -> None:
        """Forget the oldest one."""
        summary = summaries.pop(next(iter(summaries)))
        self._drop_tally(summary)
        self._too_large.pop(summary.id, None)


def _read(kind: type[M], body: bytes) -> M | None:
    """A body, or None: what cannot be read in an open log is reported by its owner."""
    try:
        return kind.read(body)
    except Invalid:
        return None


def _age(summary: Summary) -> float:
    """What nobody has taken yet is the newest."""
    return -(summary.asked_at or math.inf)


def _take(summary: Summary, term: int, body: bytes) -> None:
    taken = _read(Taken, body)
    if taken is None:
        return
    if taken.handed_back:
        summary.owner = "" if term == summary.term else summary.owner
        return
    summary.term = summary.last_sequence
    summary.team = summary.team or taken.team
    summary.owner = taken.instance
    if not summary.asked_at:
        summary.asked, summary.asked_by, summary.asked_at = taken.asked, taken.asked_by, taken.stored_at


def _decide(summary: Summary, headers: Mapping[str, str]) -> None:
    """Owners check a reply before they write it; so the first one to an open question counts."""
    decision = headers.get(h.DECISION, "cancel")
    if decision == "cancel":
        summary.is_cancelled = True
    elif decision in ("reply", "default"):
        is_about_plan = summary.questions.pop(headers.get(h.QUESTION, ""), False)
        summary.is_cancelled |= is_about_plan and h.REJECTED in headers


def _ended(status: str) -> RequestStatus:
    return RequestStatus(status) if status in set(ENDED) else RequestStatus.DONE
