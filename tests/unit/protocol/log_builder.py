"""A log written by hand: each entry gets the next sequence and time, and the state follows."""

from dataclasses import dataclass, field
from typing import Literal

from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.messages import (
    Answer,
    AnswerStatus,
    Budget,
    Decision,
    Dispatch,
    Dispatched,
    Failure,
    LogBody,
    PlanRecorded,
    Question,
    Reservation,
    Reserved,
    Result,
    ResultStatus,
    Revision,
    Taken,
    Usage,
)
from muster_protocol.messages.people import APPROVAL, APPROVE, EDIT, REJECT, question_id
from muster_protocol.plan import Plan, TaskSpec

REQUEST = "r1"
START = 1_000.0
FAR = START + 100_000.0
OUTPUT = "found"


def task(task_id: str, *dependencies: str, max_attempts: int | None = None) -> TaskSpec:
    return TaskSpec(
        id=task_id, description=f"do {task_id}", tag="work", dependencies=dependencies, max_attempts=max_attempts
    )


def plan_of(*tasks: TaskSpec) -> Plan:
    return Plan(goal="a goal", tasks=tasks)


def plan_entry(
    plan: Plan, *, in_flight: int = 100, budget: Budget | None = None, deadline: float = FAR, approve: bool = False
) -> PlanRecorded:
    return PlanRecorded(
        plan=plan,
        team="default",
        request_hash="hash",
        deadline=deadline,
        in_flight=in_flight,
        budget=budget or Budget(),
        timeout_seconds=60.0,
        approve=approve,
    )


def taken(
    instance: str, delivery: int = 1, *, deadline: float = FAR, handed_back: bool = False, alone: bool = False
) -> Taken:
    return Taken(
        instance=instance,
        delivery=delivery,
        team="default",
        deadline=deadline,
        request_hash="hash",
        request_sequence=1,
        handed_back=handed_back,
        alone=alone,
    )


def result(task_id: str, attempt: int = 1, *, worker: str = "w1", delivery: int = 1, tokens: int = 0) -> Result:
    return Result(
        request_id=REQUEST,
        task_id=task_id,
        attempt=attempt,
        status=ResultStatus.DONE,
        output=OUTPUT,
        worker=worker,
        role="work",
        delivery=delivery,
        seconds=1.0,
        usage=Usage(output_tokens=tokens),
    )


def failure(task_id: str, attempt: int = 1, *, message: str = "boom", is_final: bool = False) -> Result:
    error = Failure(error_class="logic", message=message, is_final=is_final)
    return result(task_id, attempt).model_copy(
        update={"status": ResultStatus.FAILED, "output": None, "error": error},
    )


def reserved(*attempts: tuple[str, int], timeout_seconds: float = 60.0) -> Reserved:
    return Reserved(
        attempts=tuple(Reservation(task_id=t, attempt=n, timeout_seconds=timeout_seconds) for t, n in attempts)
    )


def dispatched(*attempts: tuple[str, int]) -> Dispatched:
    return Dispatched(attempts=tuple(Dispatch(task_id=t, attempt=n, sequence=7) for t, n in attempts))


def revision(task_id: str, attempt: int, not_before: float = 0.0) -> Revision:
    return Revision(task_id=task_id, attempt=attempt, description=f"do {task_id} better", not_before=not_before)


APPROVAL_ID = question_id(REQUEST, APPROVAL)


def approval(until: float = FAR) -> Question:
    return Question(
        id=APPROVAL_ID,
        cause=APPROVAL,
        text="Carry out this plan?",
        choices=(APPROVE, EDIT, REJECT),
        until=until,
        otherwise=REJECT,
    )


def decision(
    kind: Literal["reply", "default"],
    choice: str,
    question: str = APPROVAL_ID,
    *,
    plan: Plan | None = None,
    said_at: float = 0.0,
    by: str = "client/c1",
) -> Decision:
    return Decision(
        decision=kind,
        control_sequence=0,
        by=by,
        question=question,
        choice=choice,
        plan=plan,
        said_at=said_at,
    )


def order(
    kind: Literal["retry", "reassign"], task_id: str, attempt: int, *, to: str = "other", sequence: int = 0
) -> Decision:
    """What a person said about a task, whose next attempt is this one."""
    who = {"role": to} if kind == "reassign" else {}
    named = {"task_id": task_id, "attempt": attempt, "control_sequence": sequence, "by": "client/ann"}
    return Decision.model_validate({"decision": kind, **named, **who})


def answer(text: str = "the answer") -> Answer:
    return Answer(request_id=REQUEST, status=AnswerStatus.DONE, text=text)


@dataclass
class LogBuilder:
    """The log so far. Sequences have holes, because the stream holds other requests too."""

    entries: list[Entry] = field(default_factory=list[Entry])
    term: int = 0
    time: float = START

    @property
    def state(self) -> RequestState:
        return fold(REQUEST, self.entries)

    def write(self, body: LogBody, *, sender: str, term: int = 0) -> int:
        self.time += 0.01
        sequence = (self.entries[-1].sequence if self.entries else 0) + 2
        self.entries.append(Entry(sequence, self.time, sender, term, body))
        return sequence

    def take(self, instance: str = "s1", delivery: int = 1) -> int:
        self.term = self.write(taken(instance, delivery), sender=f"supervisor/{instance}")
        return self.term

    def take_alone(self, instance: str, delivery: int) -> int:
        """Take a request that was taken in vain before."""
        self.write(taken(instance, delivery, alone=True), sender=f"supervisor/{instance}")
        return self.take(instance, delivery)

    def own(self, body: LogBody, term: int | None = None) -> int:
        return self.write(body, sender="supervisor/s1", term=self.term if term is None else term)

    def work(self, body: Result) -> int:
        return self.write(body, sender=f"worker/{body.worker}/work")

    def run(self, *bodies: Result) -> None:
        """Reserve each attempt and let it come to this result."""
        for body in bodies:
            self.own(reserved((body.task_id, body.attempt)))
            self.work(body)


def planned(*tasks: TaskSpec) -> LogBuilder:
    """A log whose request is taken and planned."""
    log = LogBuilder()
    log.take()
    log.own(plan_entry(plan_of(*tasks)))
    return log


def statuses(state: RequestState) -> dict[str, str]:
    return {task_id: found.phase.value for task_id, found in state.tasks.items()}
