"""Logs of requests, written by hand, for the tests of what the command line prints about them."""

from muster_protocol.fold import Entry, RequestState, fold
from muster_protocol.headers import is_owner
from muster_protocol.messages import (
    Answer,
    AnswerStatus,
    Decision,
    Failure,
    LogBody,
    PlanRecorded,
    Reservation,
    Reserved,
    Result,
    ResultStatus,
    Revision,
    Taken,
)
from muster_protocol.plan import Plan, TaskSpec

OWNER = "supervisor/1"
DEADLINE = 100.0


class Log:
    """Adds entries one second apart."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.term = 0

    def add(self, body: LogBody, sender: str = OWNER) -> "Log":
        sequence = len(self.entries) + 1
        if isinstance(body, Taken) and not body.handed_back:
            self.term = sequence
        term = self.term if is_owner(sender) else 0
        self.entries.append(Entry(sequence, float(sequence), sender, term, body))
        return self

    def taken(self, *, handed_back: bool = False, instance: str = "1") -> "Log":
        body = Taken(
            instance=instance,
            delivery=1,
            team="default",
            deadline=DEADLINE,
            request_hash="h",
            request_sequence=1,
            handed_back=handed_back,
        )
        return self.add(body, f"supervisor/{instance}")

    def planned(self, *tasks: TaskSpec) -> "Log":
        plan_entry = PlanRecorded(
            plan=Plan(tasks=tasks), team="default", request_hash="h", deadline=DEADLINE, in_flight=8
        )
        return self.add(plan_entry)

    def reserved(self, task_id: str, attempt: int = 1) -> "Log":
        return self.add(Reserved(attempts=(Reservation(task_id=task_id, attempt=attempt, timeout_seconds=50),)))

    def done(self, task_id: str, attempt: int = 1) -> "Log":
        return self.add(self._result(task_id, attempt, ResultStatus.DONE, None), "worker/1/researcher")

    def failed(self, task_id: str, message: str, attempt: int = 1, *, stack: str | None = None) -> "Log":
        failure = Failure(error_class="logic", message=message, stack=stack)
        return self.add(self._result(task_id, attempt, ResultStatus.FAILED, failure), "worker/1/researcher")

    def revised(self, task_id: str, attempt: int, not_before: float) -> "Log":
        return self.add(Revision(task_id=task_id, attempt=attempt, description="better", not_before=not_before))

    def cancelled(self, reason: str) -> "Log":
        return self.add(Decision(decision="cancel", control_sequence=1, by="client/me", reason=reason))

    def answered(self, status: AnswerStatus, text: str = "", gaps: tuple[str, ...] = ()) -> "Log":
        return self.add(Answer(request_id="r", status=status, text=text, gaps=gaps, seconds=2.14))

    def state(self) -> RequestState:
        return fold("r", self.entries)

    def _result(self, task_id: str, attempt: int, status: ResultStatus, error: Failure | None) -> Result:
        return Result(
            request_id="r",
            task_id=task_id,
            attempt=attempt,
            status=status,
            error=error,
            worker="1",
            role="researcher",
            seconds=0.5,
        )


def task(
    task_id: str, tag: str = "research", *, after: tuple[str, ...] = (), max_attempts: int | None = None
) -> TaskSpec:
    return TaskSpec(id=task_id, description="do it", tag=tag, dependencies=after, max_attempts=max_attempts)
