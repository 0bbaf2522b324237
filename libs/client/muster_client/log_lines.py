"""The log of a request as lines for people: what its entries, its events and the errors about it say. Pure.

The streams keep these when the services' own logs are gone, or on machines that nobody can reach.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from muster_protocol.counted import counted
from muster_protocol.messages import (
    Answer,
    AnswerStatus,
    CalledBack,
    ConflictFound,
    Decision,
    Dispatched,
    ErrorReport,
    Event,
    Extended,
    HandedBack,
    LogBody,
    PlanRecorded,
    Progress,
    Question,
    Refused,
    Reserved,
    Result,
    Revision,
    Started,
    Taken,
    ToolUsed,
)
from muster_protocol.questions import words_of
from muster_protocol.sender import worker_name
from muster_protocol.status import failure_text
from muster_protocol.status_words import ResultStatus

NAMES = 5  # attempts that one line names
_MARKS = {ResultStatus.DONE: "✓", ResultStatus.FAILED: "✗", ResultStatus.CANCELLED: "■"}


_Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that happened; the fields are those of `MUSTER_LOG=json`."""

    time: float
    sender: str
    kind: str
    message: str
    task: str = ""
    attempt: int = 0
    worker: str = ""
    status: str = ""
    error_class: str = ""

    @property
    def place(self) -> "_Place":
        """Of which task, attempt and worker it is."""
        return self.task, self.attempt, self.worker

    def as_json(self, request_id: str) -> dict[str, Any]:
        """As machines read it; what is not known is left out."""
        service, _, rest = self.sender.partition("/")
        fields = {
            "time": self.time,
            "service": service,
            "instance": rest.partition("/")[0],
            "kind": self.kind,
            "request": request_id,
            "task": self.task,
            "attempt": self.attempt,
            "worker": self.worker and worker_name(self.worker),
            "status": self.status,
            "error_class": self.error_class,
            "message": self.message,
        }
        return {name: value for name, value in fields.items() if value}


def line_of(time: float, sender: str, body: LogBody | Event | ErrorReport) -> LogLine:
    """What one message of a request says."""
    match body:
        case Result():
            return _result(time, sender, body)
        case Answer():
            return _answer(time, sender, body)
        case Revision():
            sign = "✗ no more" if body.gives_up else "↻ retry"
            again = f"{sign:<9} {_name(body.task_id, body.attempt)}  after: {body.reason}"
            return LogLine(time, sender, body.kind, again, body.task_id, body.attempt)
        case ErrorReport():
            return LogLine(time, sender, body.kind, f"✗ refused {body.subject} #{body.sequence}: {body.reason}")
        case Taken() | PlanRecorded() | Extended() | Question() | Reserved() | Dispatched() | Decision():
            return LogLine(time, sender, body.kind, _request_text(body))
        case _:
            return _event(time, sender, body)


def growth_text(body: Extended) -> str:
    """By what the plan grew, or why it did not: `3 tasks more (over:pages)`."""
    if body.refused is not None:
        return f"does not grow ({body.cause}): {body.refused.message}"
    why = f": {body.reason}" if body.reason else ""
    more = f"{counted(len(body.add), 'task')} more" if body.add or not body.reason else "nothing more"
    gone = f" in place of {', '.join(body.drop[:NAMES])}{', …' * (len(body.drop) > NAMES)}" if body.drop else ""
    return f"{more}{gone} ({body.cause}){why}"


def in_order(lines: Sequence[LogLine]) -> list[LogLine]:
    """By time; but of an attempt, what was stored out of turn: its start first, its tools before its result."""
    said: dict[_Place, float] = {}
    starts: dict[_Place, LogLine] = {}
    results: dict[_Place, float] = {}
    for line in sorted(lines, key=lambda line: line.time):
        if line.kind == Started.kind:
            starts.setdefault(line.place, line)
        elif line.worker:
            said.setdefault(line.place, line.time)
        if line.kind == Result.kind:
            results.setdefault(line.place, line.time)

    def rank(line: LogLine) -> tuple[float, int]:
        if starts.get(line.place) is line:
            return min(line.time, said.get(line.place, line.time)), 0
        if line.kind == ToolUsed.kind:
            return min(line.time, results.get(line.place, line.time)), 1
        return line.time, 2 if line.kind == Result.kind else 1

    return sorted(lines, key=rank)


def _request_text(body: Taken | PlanRecorded | Extended | Question | Reserved | Dispatched | Decision) -> str:
    match body:
        case Taken():
            how = f"taken by supervisor-{body.instance}, delivery {body.delivery}"
            return f"← request handed back by supervisor-{body.instance}" if body.handed_back else f"→ request {how}"
        case PlanRecorded():
            warnings = "".join(f"; {warning}" for warning in body.warnings)
            return f"☰ plan    {counted(len(body.plan.tasks), 'task')} by {body.planner or 'the request'}{warnings}"
        case Extended():
            return f"☰ plan    {growth_text(body)}"
        case Reserved():
            return f"… reserve {_reserved(body)}"
        case Dispatched():
            return f"→ queued  {_names([(one.task_id, one.attempt) for one in body.attempts])}"
        case Question() | Decision():
            return _people_text(body)
        case _:
            assert_never(body)


def _people_text(body: Question | Decision) -> str:
    if isinstance(body, Question):
        return f"? asked   {body.text} {'|'.join(body.choices)}".rstrip()
    return f"■ decided {words_of(body)}"


def _reserved(body: Reserved) -> str:
    """The attempts, or what a call of the supervisor's own model may cost."""
    if not body.purpose:
        return _names([(one.task_id, one.attempt) for one in body.attempts])
    tokens = [] if body.tokens is None else [f"{body.tokens:,} tokens"]
    usd = [] if body.usd is None else [f"{body.usd:.4f} USD"]
    return f"{body.purpose}: at most {' and '.join([*tokens, *usd])}"


def _call_text(body: CalledBack) -> str:
    """What came of a callback: `delivered to example.org in 2 tries`."""
    to, why = f" to {body.host}" if body.host else "", f": {body.reason}" if body.reason else ""
    tries = counted(body.tries, "try")
    match body.outcome:
        case "delivered":
            return f"✓ callback delivered{to} in {tries}"
        case "waits":
            return f"… callback{to} waits, tried again in {body.next_try_seconds:.0f} s{why}"
        case "given_up":
            return f"✗ callback{to} given up after {tries}{why}"


def _event(time: float, sender: str, body: Event) -> LogLine:
    if isinstance(body, CalledBack):
        return LogLine(time, sender, body.kind, _call_text(body), status=body.outcome)
    where = _name(body.task_id, body.attempt)
    worker = sender.partition("/")[2].partition("/")[0] if sender.startswith("worker/") else ""
    status = error_class = ""
    match body:
        case Started():
            text = f"→ task    {where}  started as {body.role}, delivery {body.delivery}"
        case HandedBack():
            text = f"← task    {where}  handed back{f': {body.why}' if body.why else ''}"
        case Refused():
            text = f"■ task    {where}  not run: {body.why}"
        case Progress():
            text = f"· task    {where}  {body.text}"
        case ToolUsed():
            status, error_class = "done" if body.error is None else "failed", body.error_class or ""
            how = f"{body.tool}  {body.seconds:.2f} s" if body.error is None else f"{body.tool} failed: {body.error}"
            text = f"{'·' if body.error is None else '✗'} tool    {where}  {how}"
        case ConflictFound():
            text = f"! {where}  {body.what}: {body.first} and {body.second}: {body.why}"
        case _:
            assert_never(body)
    return LogLine(time, sender, body.kind, text, body.task_id, body.attempt, worker, status, error_class)


def _result(time: float, sender: str, result: Result) -> LogLine:
    why = f": {result.error.error_class}: {failure_text(result.error)}" if result.error else ""
    text = f"{_MARKS[result.status]} result  {_name(result.task_id, result.attempt)}  {result.status.value}{why}"
    return LogLine(
        time,
        sender,
        result.kind,
        f"{text}  {result.seconds:.2f} s",
        result.task_id,
        result.attempt,
        result.worker,
        result.status.value,
        result.error.error_class if result.error else "",
    )


def _answer(time: float, sender: str, answer: Answer) -> LogLine:
    is_done = answer.status is AnswerStatus.DONE
    why = "" if is_done else "".join(f"; {gap}" for gap in answer.gaps)
    text = f"{'✓' if is_done else '✗'} answer  {answer.status.value}  {answer.seconds:.2f} s{why}"
    return LogLine(time, sender, answer.kind, text, status=answer.status.value)


def _name(task_id: str, attempt: int) -> str:
    return f"{task_id}  attempt {attempt}"


def _names(attempts: Sequence[tuple[str, int]]) -> str:
    named = ", ".join(f"{task_id} attempt {attempt}" for task_id, attempt in attempts[:NAMES])
    return named if len(attempts) <= NAMES else f"{named} and {len(attempts) - NAMES} more"
