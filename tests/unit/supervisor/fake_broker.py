"""A shop floor without a broker: one log, a queue, and owners that carry out what `due` says, some of them too late.

It keeps what the broker would: the order of the log, compare-and-set, and one stored message for each message id.
"""

from dataclasses import dataclass, field

from muster_protocol.fold import Entry, RequestState
from muster_protocol.messages import (
    Answer,
    Decision,
    Dispatch,
    Dispatched,
    LogBody,
    PlanRecorded,
    Reserved,
    Result,
    ResultStatus,
    Revision,
)
from muster_supervisor.decide import (
    Allowance,
    DispatchTasks,
    Expire,
    GiveAnswer,
    MakePlan,
    Refine,
    Step,
    due,
    timed_out,
)
from tests.unit.protocol.log_builder import REQUEST, START, result, taken

ALLOWANCE = Allowance(tokens=10, usd=0.1)


@dataclass
class Shop:
    """The world: what is stored, and what time it is."""

    plan_entry: PlanRecorded
    now: float = START
    log: list[Entry] = field(default_factory=list[Entry])
    queue: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])  # attempt → sequence
    deliveries: int = 0

    def append(self, sender: str, body: LogBody, term: int = 0) -> int:
        self.now += 0.001
        sequence = (self.log[-1].sequence if self.log else 0) + 1 + len(self.log) % 3
        self.log.append(Entry(sequence, self.now, sender, term, body))
        return sequence

    def publish(self, task_id: str, attempt: int) -> int:
        """Under its message id: a second copy is swallowed, and gets the first one's sequence."""
        return self.queue.setdefault((task_id, attempt), len(self.queue) + 1)

    def finish(self, key: tuple[str, int], body: Result | None = None, worker: str = "w1") -> None:
        task_id, attempt = key
        self.append(f"worker/{worker}/work", body or result(task_id, attempt, worker=worker))

    def unfinished(self) -> list[tuple[str, int]]:
        """What workers have in hand: published, and no result is in the log."""
        finished = {(e.body.task_id, e.body.attempt) for e in self.log if isinstance(e.body, Result)}
        return [key for key in self.queue if key not in finished]


class Superseded(Exception):
    """Somebody else has taken the request."""


@dataclass
class Owner:
    """One supervisor's hold on the request; what it knows may be old."""

    shop: Shop
    name: str
    term: int = 0
    state: RequestState = field(default_factory=lambda: RequestState(REQUEST))

    def take(self) -> "Owner":
        self.shop.deliveries += 1
        body = taken(self.name, self.shop.deliveries, deadline=self.shop.plan_entry.deadline)
        self.term = self.shop.append(f"supervisor/{self.name}", body)
        self.read()
        self._publish(
            [(task_id, len(self.state.tasks[task_id].attempts)) for task_id in self.state.dispatch_unconfirmed]
        )
        return self

    def read(self) -> None:
        for entry in self.shop.log:
            self.state.apply(entry)

    def due(self) -> list[Step]:
        return due(self.state, self.shop.now, ALLOWANCE)

    def write(self, body: LogBody) -> int:
        """Awaited: what came before it is known afterwards, also that somebody else has taken the request."""
        sequence = self.shop.append(f"supervisor/{self.name}", body, self.term)
        self.read()
        if self.state.term != self.term:
            raise Superseded
        return sequence

    def compare_and_set(self, body: PlanRecorded | Answer) -> None:
        if self.shop.log and self.shop.log[-1].sequence != self.state.last_sequence:
            self.read()
            return
        self.write(body)

    def carry_out(self, step: Step, *, crash_after_reserving: bool = False) -> None:
        match step:
            case MakePlan():
                self.compare_and_set(self.shop.plan_entry)
            case DispatchTasks(attempts):
                sequence = self.write(Reserved(attempts=attempts))
                if not crash_after_reserving:
                    self._publish([(r.task_id, r.attempt) for r in attempts if self._has(r.task_id, sequence)])
            case Refine(task_id, attempt, not_before):
                self.write(Revision(task_id=task_id, attempt=attempt, description="better", not_before=not_before))
            case Expire(task_id, attempt):
                error = timed_out(task_id, 1)
                body = result(task_id, attempt, worker=self.name)
                self.write(body.model_copy(update={"status": ResultStatus.FAILED, "error": error}))
            case GiveAnswer(status, reason):
                self.compare_and_set(Answer(request_id=REQUEST, status=status, text=reason))

    def cancel(self) -> None:
        self.write(Decision(decision="cancel", control_sequence=1, by="client/c1"))

    def _has(self, task_id: str, sequence: int) -> bool:
        """Whether the fold gave us this attempt, and it is still to be done."""
        attempt = self.state.tasks[task_id].attempts[-1]
        return attempt.reserved_sequence == sequence and attempt.result is None

    def _publish(self, keys: list[tuple[str, int]]) -> None:
        notes = [Dispatch(task_id=t, attempt=n, sequence=self.shop.publish(t, n)) for t, n in keys]
        if notes:
            self.write(Dispatched(attempts=tuple(notes)))
