"""A broker in memory: one log, a queue of tasks, and owners that carry out what `due` says, some of them too late.

It keeps what the real one keeps: the order of the log, compare-and-set, and one stored message for each message id.
"""

from dataclasses import dataclass, field
from typing import Literal

from muster_agent.team.schema import FunctionRole, Team
from muster_protocol.fold import Entry, RequestState, apply
from muster_protocol.fold.orders import fault_of_move, fault_of_retry, next_attempt
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
from muster_protocol.messages.people import REJECT
from muster_protocol.plan import Plan
from muster_supervisor.decide import (
    Allowance,
    AskApproval,
    DispatchTasks,
    Expire,
    GiveAnswer,
    Grow,
    MakePlan,
    Refine,
    Step,
    TakeDefault,
    TryAgain,
    due,
    timed_out,
)
from muster_supervisor.planning.growing import grown
from tests.unit.protocol.log_builder import (
    APPROVAL_ID,
    REQUEST,
    START,
    approval,
    decision,
    failure,
    order,
    result,
    taken,
)

TEAM = Team(team="default", roles=(FunctionRole(name="work", run="roles:work"),))
ALLOWANCE = Allowance(tokens=10, usd=0.1)
OUTCOMES = ("done", "done", "done", "failed", "final", "cancelled")


def outcome(key: tuple[str, int], how: str, worker: str = "w1", tokens: int = 4) -> Result:
    match how:
        case "done":
            found = ["x", "y", "z"][: ord(key[0][0]) % 4] if key[0] != "d" else "no list"
            return result(*key, worker=worker, tokens=tokens).model_copy(update={"output": found})
        case "cancelled":
            return failure(*key).model_copy(update={"status": ResultStatus.CANCELLED})
        case _:
            return failure(*key, is_final=how == "final")


@dataclass
class FakeBroker:
    """What is stored, and what time it is."""

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
        """Store a task under its message id; a second copy is dropped and gets the sequence of the first."""
        return self.queue.setdefault((task_id, attempt), len(self.queue) + 1)

    def finish(self, key: tuple[str, int], body: Result | None = None, worker: str = "w1") -> None:
        task_id, attempt = key
        self.append(f"worker/{worker}/work", body or result(task_id, attempt, worker=worker))

    def unfinished(self) -> list[tuple[str, int]]:
        """The attempts that are published and have no result in the log."""
        finished = {(e.body.task_id, e.body.attempt) for e in self.log if isinstance(e.body, Result)}
        return [key for key in self.queue if key not in finished]


class Superseded(Exception):
    """Another supervisor has taken the request."""


@dataclass
class Owner:
    """A supervisor that owns the request, or did; what it knows may be old."""

    broker: FakeBroker
    name: str
    term: int = 0
    state: RequestState = field(default_factory=lambda: RequestState(REQUEST))

    def take(self) -> "Owner":
        self.broker.deliveries += 1
        body = taken(self.name, self.broker.deliveries, deadline=self.broker.plan_entry.deadline)
        self.term = self.broker.append(f"supervisor/{self.name}", body)
        self.read()
        self._publish(
            [(task_id, len(self.state.tasks[task_id].attempts)) for task_id in self.state.dispatch_unconfirmed]
        )
        return self

    def read(self) -> None:
        for entry in self.broker.log:
            apply(self.state, entry)

    def due(self) -> list[Step]:
        return due(self.state, self.broker.now, ALLOWANCE)

    def write(self, body: LogBody) -> int:
        """Append, and read everything up to it; raise if another supervisor has taken the request."""
        sequence = self.broker.append(f"supervisor/{self.name}", body, self.term)
        self.read()
        if self.state.term != self.term:
            raise Superseded
        return sequence

    def compare_and_set(self, body: PlanRecorded | Answer) -> None:
        if self.broker.log and self.broker.log[-1].sequence != self.state.last_sequence:
            self.read()
            return
        self.write(body)

    def carry_out(self, step: Step, *, crash_after_reserving: bool = False) -> None:
        match step:
            case MakePlan():
                self.compare_and_set(self.broker.plan_entry)
            case DispatchTasks(attempts):
                sequence = self.write(Reserved(attempts=attempts))
                if not crash_after_reserving:
                    self._publish([(r.task_id, r.attempt) for r in attempts if self._has(r.task_id, sequence)])
            case Refine((_, task_id, attempt), not_before) | TryAgain((_, task_id, attempt), not_before):
                self.write(Revision(task_id=task_id, attempt=attempt, description="better", not_before=not_before))
            case Grow(cause):
                self.write(grown(self.state, cause, TEAM))
            case Expire((_, task_id, attempt)):
                error = timed_out(task_id, 1)
                body = result(task_id, attempt, worker=self.name)
                self.write(body.model_copy(update={"status": ResultStatus.FAILED, "error": error}))
            case AskApproval():
                self.write(approval(self.broker.now + self.broker.plan_entry.person_seconds))
            case TakeDefault(question):
                self.write(decision("default", REJECT, question))
            case GiveAnswer(status, reason):
                self.compare_and_set(Answer(request_id=REQUEST, status=status, text=reason))

    def copy_reply(self, choice: str, plan: Plan | None = None, *, said_at: float = 0.0) -> None:
        """Copy what a person said about the plan, unless there is a decision by now."""
        asked = self.state.questions.get(APPROVAL_ID)
        if asked is None or asked.decision is None:
            self.write(decision("reply", choice, plan=plan, said_at=said_at))

    def copy_order(self, kind: Literal["retry", "reassign"], task_id: str, sequence: int) -> None:
        """Copy what a person said about a task, unless it cannot be done by what this owner knows."""
        if not (fault_of_move if kind == "reassign" else fault_of_retry)(self.state, task_id):
            attempt = next_attempt(self.state.tasks[task_id])
            self.write(order(kind, task_id, attempt, to="work", sequence=sequence))

    def cancel(self) -> None:
        self.write(Decision(decision="cancel", control_sequence=1, by="client/c1"))

    def _has(self, task_id: str, sequence: int) -> bool:
        """Whether the fold gave us this attempt, and it has no result yet."""
        attempt = self.state.tasks[task_id].attempts[-1]
        return attempt.reserved_sequence == sequence and attempt.result is None

    def _publish(self, keys: list[tuple[str, int]]) -> None:
        notes = [Dispatch(task_id=t, attempt=n, sequence=self.broker.publish(t, n)) for t, n in keys]
        if notes:
            self.write(Dispatched(attempts=tuple(notes)))
