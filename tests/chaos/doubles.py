"""Which attempts were executed twice at the same time, by what the role itself wrote down, against the conflicts found.

An execution lasts from its start to its end, or to the death of its process; paused time does not count. Two executions
of one attempt that ran beside each other for SEEN_SECONDS must be a conflict, unless nobody could see it: while the
broker or all coordinators were away. So must two results by workers, and a second message that we stored by hand. A
conflict must have that twice behind it which it names, and in the order that it names.
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

SEEN_SECONDS = 0.2  # a start is said after 20 ms, and a result at the latest shows who was still there
ASKED_SECONDS = 1.5  # whoever dies leaves no result: that it was there, only a question could show
BACK_SECONDS = 1.0  # a coordinator, or a connection, that is back needs a moment before it asks
CLOCK_SECONDS = 0.25  # by which a worker's clock may be wrong about the broker's on a busy machine
Key = tuple[str, str, int]  # request, task, attempt


class Execution(NamedTuple):
    """One run of a role, in one process."""

    process: int
    began: float
    ended: float
    has_died: bool = False


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
        found[key] += [Execution(process, began, min(died, default=math.inf), has_died=True) for began in starts]
    return found


def beside(one: Execution, other: Execution, ledger: Ledger) -> float:
    """For how long both ran at the same time, in sight of a coordinator."""
    began, ended = max(one.began, other.began), min(one.ended, other.ended)
    if ended <= began or math.isinf(ended):
        return 0.0
    hidden = [(o.began, o.ended) for o in ledger.outages if o.process in (one.process, other.process)]
    for run in (one, other):
        hidden += ledger.recovering(ledger.names.get(run.process, "?").split("-")[0])
    hidden += ledger.away("broker", padding=BACK_SECONDS)
    hidden += ledger.starved(padding=BACK_SECONDS)
    hidden += ledger.all_away("c", padding=BACK_SECONDS)
    return ended - began - overlap(hidden, began, ended)


def missed(evidence: Evidence, ledger: Ledger) -> Iterator[tuple[Key, str]]:
    """Attempts that were assigned or executed twice and are no conflict."""
    found = {(record.request_id, record.task_id, record.attempt) for record in evidence.conflicts}
    for key, runs in executions(evidence, ledger).items():
        seen = [beside(*pair, ledger) for pair in combinations(runs, 2) if _shows(*pair, ledger)]
        if key not in found and seen:
            yield key, f"ran twice beside each other for {max(seen):.2f} s, and no conflict was found"
    for log in evidence.logs.values():
        for key, count in _finishes(log).items():
            if key not in found and count > 1:
                yield key, f"has {count} results, and no conflict was found"
    for copy in ledger.task_copies:
        if copy.key not in found and not overlap(ledger.deaths_of("w"), copy.stored_at, copy.stored_at + BACK_SECONDS):
            yield copy.key, f"had a second message (TASKS #{copy.sequence}, {copy.what}), and no conflict was found"


def invented(evidence: Evidence, ledger: Ledger) -> Iterator[tuple[Key, str]]:
    """Conflicts behind which nothing was dispatched, delivered or executed twice, or not in the order they say."""
    runs = executions(evidence, ledger)
    for record in evidence.conflicts:
        key = (record.request_id, record.task_id, record.attempt)
        log = evidence.logs.get(record.request_id)
        for kind in record.kinds:
            if not _is_shown(kind, record, log, runs.get(key, []), ledger):
                yield key, f"is listed as {kind.value}, and nothing shows that: {record.why}"


def executed_twice(evidence: Evidence, ledger: Ledger) -> tuple[int, int]:
    """How many attempts were executed twice at the same time, for however short; and how many must be a conflict."""
    pairs = [list(combinations(runs, 2)) for runs in executions(evidence, ledger).values()]
    at_once = [any(min(one.ended, other.ended) > max(one.began, other.began) for one, other in some) for some in pairs]
    return sum(at_once), sum(any(_shows(*pair, ledger) for pair in some) for some in pairs)


def results_of(log: Log | None, task: str, attempt: int) -> list[tuple[float, Result]]:
    """What workers finished of an attempt, and when it was stored."""
    found: list[tuple[float, Result]] = []
    for entry in log.entries if log is not None else []:
        body = entry.body
        if isinstance(body, Result) and not is_owner(entry.sender) and body.status is not ResultStatus.CANCELLED:
            found.append((entry.time, body))
    return [(at, result) for at, result in found if (result.task_id, result.attempt) == (task, attempt)]


def is_after_end(log: Log | None, task: str, run: Execution, worker: str) -> bool:
    """Whether an execution began after a success of its task that is another's, or after the answer."""
    return _is_after_success(log, task, run, worker) or _is_after_answer(log, run)


def _shows(one: Execution, other: Execution, ledger: Ledger) -> bool:
    """Whether two executions ran beside each other long enough for a coordinator to know."""
    earlier = min(one, other, key=lambda run: run.began)
    return beside(one, other, ledger) > (ASKED_SECONDS if earlier.has_died else SEEN_SECONDS)


def _is_shown(kind: ConflictKind, record: Conflict, log: Log | None, runs: list[Execution], ledger: Ledger) -> bool:
    task = record.task_id
    match kind:
        case ConflictKind.SAME_WORK:
            is_so = True
        case ConflictKind.DISPATCHED_TWICE:
            is_so = len(_messages(record, log)) > 1
        case ConflictKind.FINISHED_TWICE:
            is_so = log is not None and _finishes(log).get((record.request_id, task, record.attempt), 0) > 1
        case ConflictKind.STARTED_TWICE:
            several = _started_messages(record) > 1
            is_so = any(several or _are_beside(*pair, record, log, ledger) for pair in combinations(runs, 2))
        case ConflictKind.STARTED_AFTER_SUCCESS:
            is_so = any(_is_after_success(log, task, run, ledger.names.get(run.process, "")) for run in runs)
        case ConflictKind.STARTED_AFTER_ANSWER:
            is_so = any(_is_after_answer(log, run) for run in runs)
    return is_so


def _are_beside(one: Execution, other: Execution, record: Conflict, log: Log | None, ledger: Ledger) -> bool:
    """Whether the earlier was not over when the later began: it ran, or its result was still to be stored."""
    earlier, later = sorted((one, other), key=lambda run: run.began)
    worker = ledger.names.get(earlier.process)
    finished = [at for at, result in results_of(log, record.task_id, record.attempt) if result.worker == worker]
    return max([earlier.ended, *finished]) > later.began - CLOCK_SECONDS


def _is_after_success(log: Log | None, task: str, run: Execution, worker: str) -> bool:
    success = log.successes.get(task) if log is not None else None
    if success is None:
        return False
    is_own = isinstance(success.body, Result) and success.body.worker == worker
    return run.began > success.time - (0.0 if is_own else CLOCK_SECONDS)


def _is_after_answer(log: Log | None, run: Execution) -> bool:
    return log is not None and bool(log.answers) and run.began > log.answered_at - CLOCK_SECONDS


def _started_messages(record: Conflict) -> int:
    """From how many messages the attempt was started, as far as the record says."""
    return len({side.task_sequence for side in record.sides if side.started_at is not None and side.task_sequence})


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
