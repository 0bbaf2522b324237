"""What a timeline is made of: steps with a beginning, an end and a status, and what they add up to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster_protocol.fold import RequestState
from muster_protocol.status import Standing


class What(StrEnum):
    """What happens in a step."""

    REQUEST = "request"  # the whole of it
    QUEUED = "queued"  # a request for a supervisor, or an attempt for a worker
    PLAN = "plan"
    GROWTH = "growth"  # the plan got more tasks, or was kept from it
    READY = "ready"  # a task that nothing holds up but room and budget
    DISPATCH = "dispatch"  # from its reservation until its message is stored
    ATTEMPT = "attempt"  # one worker at one delivery of one attempt
    TOOL = "tool"
    REVISION = "revision"  # the supervisor prepares the next attempt of a failed task
    RETRY_WAIT = "retry_wait"
    HAND_BACK = "hand_back"  # until somebody else has it
    TAKE_OVER = "take_over"
    CONFLICT = "conflict"
    QUESTION = "question"  # from when a person is asked to the decision that counts
    DECISION = "decision"
    ANSWER = "answer"


class StepStatus(StrEnum):
    """What a step came to."""

    OPEN = "open"  # it goes on
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"  # the request ended first
    HANDED_BACK = "handed_back"
    LOST = "lost"  # its worker said nothing more
    UNCOUNTED = "uncounted"  # a result that came second or too late; `error` says which


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Times are the broker's; a step that goes on has no end."""

    what: What
    begin: float
    end: float | None
    status: StepStatus = StepStatus.DONE
    task: str = ""
    attempt: int = 0
    delivery: int = 0
    worker: str = ""
    role: str = ""
    error_class: str = ""
    error: str = ""
    tokens: int = 0
    usd: float = 0.0
    is_critical: bool = False
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def until(self, now: float) -> float:
        """Its end, or now."""
        return now if self.end is None else self.end


@dataclass(frozen=True, slots=True)
class Totals:
    """What the steps add up to; what counts is what the fold says."""

    wall_seconds: float = 0.0
    work_seconds: float = 0.0  # of all counted results, as if one came after the other
    queue_seconds: float = 0.0  # in which an attempt or the request waited for somebody to take it
    tasks: int = 0
    done: int = 0
    failed: int = 0
    attempts: int = 0
    retries: int = 0
    lost: int = 0
    takeovers: int = 0
    hand_backs: int = 0
    conflicts: int = 0
    uncounted: int = 0
    tool_calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """All steps of a request in the order in which they began."""

    state: RequestState
    standing: Standing
    begin: float
    end: float  # of the last step; now, while the request is open
    steps: tuple[Step, ...]
    critical_path: tuple[str, ...]  # plan, the tasks that the answer waited for one after the other, answer
    totals: Totals
    trace_id: str = ""

    @property
    def is_open(self) -> bool:
        return self.state.answer is None
