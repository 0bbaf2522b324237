"""Which attempts were executed twice at the same time, by what the role itself wrote down, against the conflicts found.

An execution lasts from its start to its end, or to the death of its process; paused time does not count. Two executions
of one attempt that ran beside each other for a while must be a conflict, unless nobody could see it: while a broker or
the coordinator was away. Two results by workers must always be one. A conflict must have something twice behind it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from muster_protocol.conflict import Conflict, ConflictKind
from muster_protocol.headers import is_owner
from muster_protocol.messages import Dispatched, Result, ResultStatus
from tests.chaos.evidence import Evidence, Log
from tests.chaos.ledger import Ledger, overlap

SEEN_SECONDS = 1.0  # a start is said after 20 ms, and asking who lives takes a moment on a busy machine
Key = tuple[str, str, int]  # request, task, attempt


class Execution(NamedTuple):
    """One run of a role, in one process."""

    process: int
    began: float
    ended: float


def executions(evidence: Evidence, ledger: Ledger) -> dict[Key, list[Execution]]:
    """Every execution of each attempt; one whose end nobody wrote down ended with its process."""
    open_ones: dict[tuple[Key, int], list[float]] = defaultdict(list)
    found: dict[Key, list[Execution]] = defaultdict(list)
    for trace in sorted(evidence.traces, key=lambda trace: trace.time):
        key = (trace.request, trace.task, trace.attempt)
        if trace.what == "start":
            open_ones[key, trace.process].append(trace.time)
        elif trace.what == "over" and open_ones[key, trace.process]:
            found[key].append(Execution(trace.process, open_ones[key, trace.process].pop(0), trace.time))
    for (key, process), starts in open_ones.items():
        died = [outage.began for outage in ledger.outages if outage.is_death and outage.process == process]
        found[key] += [Execution(process, began, min(died, default=math.inf)) for began in starts]
    return found


def beside(one: Execution, other: Execution, ledger: Ledger) -> float:
    """For how long both ran at the same time, in sight of a coordinator."""
    began, ended = max(one.began, other.began), min(one.ended, other.ended)
    if ended <= began or math.isinf(ended):
        return 0.0
    hidden = [(o.began, o.ended) for o in ledger.outages if o.process in (one.process, other.process)]
    for who in ("broker", "c"):
        hidden += ledger.away(who, padding=SEEN_SECONDS)
    return ended - began - overlap(hidden, began, ended)


def missed(evidence: Evidence, ledger: Ledger) -> Iterator[tuple[Key, str]]:
    """Attempts that were executed twice and are no conflict."""
    found = {(record.request_id, record.task_id, record.attempt) for record in evidence.conflicts}
    for key, runs in executions(evidence, ledger).items():
        longest = max((beside(one, other, ledger) for one, other in combinations(runs, 2)), default=0.0)
        if key not in found and longest > SEEN_SECONDS:
            yield key, f"ran twice beside each other for {longest:.2f} s, and no conflict was found"
    for log in evidence.logs.values():
        for key, count in _finishes(log).items():
            if key not in found and count > 1:
                yield key, f"has {count} results, and no conflict was found"


def invented(evidence: Evidence, ledger: Ledger) -> Iterator[tuple[Key, str]]:
    """Conflicts behind which nothing was dispatched, delivered or executed twice."""
    runs = executions(evidence, ledger)
    for record in evidence.conflicts:
        key = (record.request_id, record.task_id, record.attempt)
        log = evidence.logs.get(record.request_id)
        has_two_results = log is not None and _finishes(log).get(key, 0) > 1
        is_known = {
            ConflictKind.SAME_WORK: True,
            ConflictKind.DISPATCHED_TWICE: len(_messages(record, log)) > 1,
            ConflictKind.FINISHED_TWICE: has_two_results,
            ConflictKind.STARTED_AFTER_ANSWER: _is_begun_after_answer(log, runs.get(key, ())),
        }
        for kind in record.kinds:
            if not is_known.get(kind, len(runs.get(key, ())) > 1):
                yield key, f"is listed as {kind.value}, and nothing shows that: {record.why}"


def executed_twice(evidence: Evidence, ledger: Ledger) -> int:
    """How many attempts were executed twice at the same time, for however short."""
    return sum(
        any(min(one.ended, other.ended) > max(one.began, other.began) for one, other in combinations(runs, 2))
        for runs in executions(evidence, ledger).values()
    )


def _is_begun_after_answer(log: Log | None, runs: Iterable[Execution]) -> bool:
    return log is not None and bool(log.answers) and any(run.began > log.answered_at for run in runs)


def _finishes(log: Log) -> dict[Key, int]:
    """By how many workers, deliveries and messages each attempt was finished."""
    finishes: dict[Key, set[tuple[str, int, int]]] = defaultdict(set)
    for entry in log.entries:
        body = entry.body
        if isinstance(body, Result) and not is_owner(entry.sender) and body.status is not ResultStatus.CANCELLED:
            key = (log.request_id, body.task_id, body.attempt)
            finishes[key].add((body.worker, body.delivery, body.task_sequence))
    return {key: len(found) for key, found in finishes.items()}


def _messages(record: Conflict, log: Log | None) -> set[int]:
    """The places of the attempt's messages in TASKS, by its log and by what workers said."""
    found = {side.task_sequence for side in record.sides if side.worker and side.task_sequence}
    for body in _bodies(log):
        if isinstance(body, Dispatched):
            wanted = (record.task_id, record.attempt)
            found |= {stored.sequence for stored in body.attempts if (stored.task_id, stored.attempt) == wanted}
    return found


def _bodies(log: Log | None) -> Iterable[object]:
    return [] if log is None else [entry.body for entry in log.entries]
