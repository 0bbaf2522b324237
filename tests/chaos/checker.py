"""Compares what the streams say with what the runner knows. Pure: each rule yields what breaks it.

How faults of our own are taken into account: an answer may be late by lease + 2 s, and by all the time after the
deadline in which a broker or a supervisor was away or had been back for less than a lease (both supervisors may be
hit one after the other). A task may begin RACE_SECONDS after its result was stored, since nobody can look into the
log and begin in one instant. (A worker paused in just that instant would be a false alarm: a millisecond in a run.)
Nobody's messages carry a checksum: what was under way while bytes were changed must be answered, and no more is asked
of it. Where nobody got the processor for a while, that time counts as a fault, too. So does the time in which three
brokers may elect a leader after one of them was lost, though that one is back long before.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from muster_protocol.fold.state import Entry
from muster_protocol.messages import AnswerStatus, PlanRecorded, Result
from tests.chaos.doubles import executions, invented, missed
from tests.chaos.evidence import Evidence, Log
from tests.chaos.ledger import Ledger, Sent, Word, overlap
from tests.chaos.stops import not_stopped, wrong_stops

LATE_SECONDS = 2.0
RACE_SECONDS = 0.25
SIGN_SECONDS = 3.0  # a worker that runs something says so within this when it is asked
GIVEN_UP = "without any progress"
READY_SECONDS = 15.0  # after damage to a connection: half-open ones are noticed within five, and the machine is busy
ELECTION_SECONDS = 9.0  # the longest that a node waits before it asks for votes: a constant of nats-server
DAMAGED_SECONDS = 2.0  # before and after bytes were changed: what was on its way then


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule, and who broke it."""

    rule: str
    request: str
    text: str


class Checker:
    """All rules over one run."""

    def __init__(self, ledger: Ledger, evidence: Evidence, lease_seconds: float, *, is_cluster: bool = False) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._lease = lease_seconds
        self._is_cluster = is_cluster
        self.excused_late = 0
        self.races = 0
        self._damaged = {sent.id for sent in ledger.sent.values() if self._is_damaged(sent)}

    def violations(self) -> list[Violation]:
        found = [violation for sent in self._ledger.sent.values() for violation in self._request(sent)]
        for log in self._evidence.logs.values():
            found.extend(self._log(log))
        found.extend(self._executions())
        found.extend(self._conflicts())
        found = [violation for violation in found if violation.request not in self._damaged]
        found.extend(self._answered(self._damaged))
        found.extend(self._recoveries())
        found.extend(self._garbage())
        found.extend(self._rivals())
        found.extend(self._given_up())
        found.extend(self._queues())
        found.extend(Violation("dead process", "", f"{death.who} {death.text}") for death in self._ledger.deaths)
        return found

    def _is_damaged(self, sent: Sent) -> bool:
        """Whether bytes that concern it may have been changed."""
        log = self._evidence.logs.get(sent.id)
        ended = log.answered_at if log is not None and log.answers else math.inf
        damages = [(began - DAMAGED_SECONDS, end + DAMAGED_SECONDS) for began, end in self._ledger.damages]
        return overlap(damages, sent.sent_at, ended) > 0

    def _answered(self, requests: Collection[str]) -> Iterator[Violation]:
        for request_id in requests:
            log = self._evidence.logs.get(request_id)
            if self._ledger.sent[request_id].word is Word.OK and (log is None or not log.answers):
                yield Violation("I1 one answer", request_id, "acked, and has no answer since bytes were changed")

    def _recoveries(self) -> Iterator[Violation]:
        """Whatever the wire did, its service is ready again soon; and a disk that was full leaves nothing behind."""
        for found in self._ledger.recoveries:
            away = self._without_leader()
            away += [*self._ledger.away(found.who, padding=self._lease), *self._ledger.starved(padding=self._lease)]
            if found.ready == math.inf:
                yield Violation("ready again", "", f"{found.who} was never ready again after {found.what}")
            elif (took := found.ready - found.ended - overlap(away, found.ended, found.ready)) > READY_SECONDS:
                yield Violation("ready again", "", f"{found.who} took {took:.1f} s after {found.what}")
        for text in self._ledger.undrained:
            yield Violation("full disk", "", text)

    def _request(self, sent: Sent) -> Iterator[Violation]:
        log = self._evidence.logs.get(sent.id)
        answers = len(log.answers) if log else 0
        if sent.word is Word.OK and answers != 1:
            yield Violation("I1 one answer", sent.id, f"acked, and has {answers} answers")
        if sent.word is Word.UNKNOWN and answers > 1:
            yield Violation("I1 one answer", sent.id, f"unknown, and has {answers} answers")
        if log is None or log.answer is None:
            return
        if not sent.is_valid and log.answer.status is not AnswerStatus.FAILED:
            yield Violation("I10 invalid request", sent.id, f"was answered {log.answer.status}")
        if sent.word is Word.OK:
            yield from self._times(sent, log)

    def _times(self, sent: Sent, log: Log) -> Iterator[Violation]:
        deadline = sent.acked_at + sent.deadline_seconds
        late = self._undisturbed(deadline, log.answered_at)
        if late > self._lease + LATE_SECONDS:
            whole = log.answered_at - deadline
            yield Violation(
                "I4 deadline", sent.id, f"{whole:.1f} s after its deadline, {late:.1f} s of them without a fault"
            )
        elif log.answered_at > deadline + self._lease + LATE_SECONDS:
            self.excused_late += 1
        if sent.cancelled_at is None or log.answer is None or log.answer.status is AnswerStatus.CANCELLED:
            return
        if self._undisturbed(sent.cancelled_at, log.answered_at) > self._lease + LATE_SECONDS:
            yield Violation("cancel", sent.id, f"was cancelled, and answered {log.answer.status} much later")

    def _undisturbed(self, began: float, ended: float) -> float:
        """How much of a time was free of faults that may delay an answer."""
        away = [*self._without_leader(), *self._ledger.away("s", padding=self._lease)]
        away += [*self._ledger.recovering("s"), *self._ledger.starved(padding=self._lease)]
        return max(0.0, ended - began) - overlap(away, began, ended)

    def _without_leader(self) -> list[tuple[float, float]]:
        """When a broker was away, and the others may not have elected whoever leads in its place."""
        away = self._ledger.away("broker", padding=self._lease)
        election = ELECTION_SECONDS + self._lease if self._is_cluster else 0.0
        return [(began, max(ended, began + election)) for began, ended in away]

    def _log(self, log: Log) -> Iterator[Violation]:
        if log.request_id not in self._ledger.sent and not self._is_bare(log) and log.answers:
            yield Violation("no answer without a request", log.request_id, "nobody sent it")
        if len(log.plans) > 1:
            yield Violation("I2 one plan", log.request_id, f"{len(log.plans)} plans of a valid term")
        if len(log.answers) > 1 and log.request_id not in self._ledger.sent:
            yield Violation("I2 one answer", log.request_id, f"{len(log.answers)} answers of a valid term")
        finishes = [_finish_of(entry, entry.body) for entry in log.entries if isinstance(entry.body, Result)]
        copies = Counter(finishes)
        for message_id, count in copies.items():
            if count > 1:
                yield Violation("I2 one result", log.request_id, f"{message_id} was stored {count} times")
        yield from self._kept_work(log)

    def _is_bare(self, log: Log) -> bool:
        """A publish without an id whose word was lost: stored twice, it is two requests."""
        plan_entry = log.plans[0].body if log.plans else None
        return isinstance(plan_entry, PlanRecorded) and plan_entry.plan.goal in self._ledger.bare

    def _kept_work(self, log: Log) -> Iterator[Violation]:
        if log.answer is None:
            return
        table = {outcome.id: outcome.status.value for outcome in log.answer.tasks}
        for task, entry in log.successes.items():
            if table.get(task) != "done":
                text = f"{task} is stored as done at #{entry.sequence}, the answer says {table.get(task)}"
                yield Violation("I4 finished work", log.request_id, text)
        for task in _not_in_output(log, table):
            yield Violation("I4 finished work", log.request_id, f"{task} is done, and the answer has no output of it")
        verify = bool(table) and all(status == "done" for status in table.values())
        if verify and log.answer.status not in (AnswerStatus.DONE, AnswerStatus.CANCELLED):
            yield Violation("answer", log.request_id, f"all tasks are done, and it says {log.answer.status}")

    def _executions(self) -> Iterator[Violation]:
        for trace in self._evidence.traces:
            log = self._evidence.logs.get(trace.request)
            stored = log.finished(trace.task, trace.attempt) if log and trace.what == "start" else None
            if stored is None or trace.time <= stored.time:
                continue
            after = trace.time - stored.time
            if after > RACE_SECONDS:
                text = f"{trace.task} attempt {trace.attempt} began {after:.2f} s after its result was stored"
                yield Violation("I3 never again", trace.request, text)
            else:
                self.races += 1

    def _conflicts(self) -> Iterator[Violation]:
        for rule in (missed, invented, wrong_stops, not_stopped):
            for (request_id, task, attempt), text in rule(self._evidence, self._ledger):
                yield Violation("I6 conflicts", request_id, f"{task} attempt {attempt} {text}")
        for record in self._evidence.conflicts:
            key = (record.request_id, record.task_id, record.attempt)
            if (count := self._evidence.announced[key]) != 1:
                text = f"{record.task_id} attempt {record.attempt} has {count} events about its conflict"
                yield Violation("I6 conflicts", record.request_id, text)

    def _garbage(self) -> Iterator[Violation]:
        reports = Counter((report.stream, report.sequence) for report in self._evidence.errors)
        for (stream, sequence), count in reports.items():
            if count > 1:
                yield Violation("I10 one error", "", f"{count} errors about {stream} #{sequence}")
        for piece in self._ledger.litter:
            if piece.sequence is None:
                continue
            has_error = reports[piece.stream, piece.sequence] > 0
            if has_error != piece.has_error:
                text = "has no error" if piece.has_error else "made an error"
                yield Violation("I10 one error", "", f"{piece.what} ({piece.stream} #{piece.sequence}) {text}")

    def _rivals(self) -> Iterator[Violation]:
        """Of two bodies under one id one counts, and the sender of the other is told."""
        reported = {report.sequence for report in self._evidence.errors if report.stream == "REQUESTS"}
        for rivals in self._ledger.rivals:
            if not reported.intersection(rivals.sequences):
                places = " and ".join(f"#{sequence}" for sequence in rivals.sequences)
                yield Violation("one id twice", rivals.request, f"neither {places} has an error")

    def _given_up(self) -> Iterator[Violation]:
        """Nothing is given up for want of progress while a worker is at it, in sight of its supervisor."""
        hidden = [*self._ledger.away("broker", padding=SIGN_SECONDS), *self._ledger.away("w", padding=SIGN_SECONDS)]
        for (request_id, task, attempt), runs in executions(self._evidence, self._ledger).items():
            log = self._evidence.logs.get(request_id)
            if log is None or log.answer is None or GIVEN_UP not in log.answer.reason:
                continue
            asked = (log.answered_at - SIGN_SECONDS, log.answered_at)
            is_at_work = any(run.began < asked[0] and asked[1] < run.ended for run in runs)
            if is_at_work and not overlap(hidden, *asked):
                yield Violation("I1 poison", request_id, f"given up while {task} attempt {attempt} ran")

    def _queues(self) -> Iterator[Violation]:
        for consumer, found in self._evidence.backlogs.items():
            if found is None or found.waiting or found.working:
                yield Violation("nothing left", "", f"{consumer} has {found}")
        for stream, left in self._evidence.stored.items():
            if left:
                yield Violation("nothing left", "", f"{stream} holds {len(left)} messages: {'; '.join(left[:5])}")


def _not_in_output(log: Log, table: Mapping[str, str]) -> list[str]:
    """The tasks that are done, that nobody used who is done, and whose output the answer lacks."""
    plan_entry = log.plans[0].body if log.plans else None
    if log.answer is None or not isinstance(plan_entry, PlanRecorded):
        return []
    done = {task for task, status in table.items() if status == "done"}
    tasks = plan_entry.plan.tasks
    used = {needed for spec in tasks if spec.id in done for needed in spec.dependencies}
    ends = {spec.id for spec in tasks} - {needed for spec in tasks for needed in spec.dependencies}
    if len(ends) == 1 and ends <= done:  # its output stands alone
        return [] if log.answer.output is not None else list(ends)
    shown = cast("dict[str, object]", log.answer.output) if isinstance(log.answer.output, dict) else {}
    return sorted(done - used - shown.keys())


def _finish_of(entry: Entry, result: Result) -> str:
    """Who finished which attempt at which delivery: stored once, whatever was lost meanwhile.

    An owner that was paused may write under the term that it had; the fold reads past that.
    """
    who = result.worker or f"its owner under term {entry.term}"
    of_message = f" of message {result.task_sequence}" if result.task_sequence else ""
    return f"{result.attempt_id} by {who} at delivery {result.delivery}{of_message}"
