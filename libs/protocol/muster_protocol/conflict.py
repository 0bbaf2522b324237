"""A conflict: the same attempt assigned, started or finished more than once, as it is kept in the bucket `conflicts`.

A record holds the evidence (its sides, the success that counts, the answer) and what was decided from it. It grows with
its evidence: whichever coordinator sees what, there is one record of an attempt. The coordinator's
`conflicts/judge.py` judges.
"""

from enum import StrEnum

from pydantic import Field

from muster_protocol.attempt_id import AttemptId
from muster_protocol.plan import Frozen
from muster_protocol.subjects import RequestId, TaskId

MAX_SIDES = 8  # of one attempt: more tell nothing new, and judging stays constant whatever somebody publishes


class ConflictKind(StrEnum):
    """What was seen twice."""

    DISPATCHED_TWICE = "dispatched_twice"  # two task messages of one attempt
    STARTED_TWICE = "started_twice"  # from two messages, or by two live workers from one
    FINISHED_TWICE = "finished_twice"
    STARTED_AFTER_SUCCESS = "started_after_success"  # the task had a success that counts
    STARTED_AFTER_ANSWER = "started_after_answer"
    SAME_WORK = "same_work"  # two tasks of one plan that say the same; nobody is stopped


class Ended(StrEnum):
    """How a side ended."""

    REFUSED = "refused"  # its worker did not run it
    HANDED_BACK = "handed_back"
    STOPPED = "stopped"  # aborted: it has a cancelled result
    FINISHED = "finished"  # it has a result


class SideId(Frozen):
    """Which delivery of which task message, at which worker."""

    worker: str
    delivery: int
    task_sequence: int = 0  # of the message in TASKS; 0: not known

    def __hash__(self) -> int:
        return hash((self.worker, self.delivery, self.task_sequence))

    def __str__(self) -> str:
        if not self.worker:
            return f"message {self.task_sequence}"
        return f"{self.worker} (message {self.task_sequence or '?'}, delivery {self.delivery})"


class Side(Frozen):
    """One assignment of an attempt. Without a worker: a message that was dispatched, whoever took it."""

    worker: str = ""
    delivery: int = 0
    task_sequence: int = 0
    sender: str = ""
    started_at: float | None = None
    last_sign_at: float | None = None  # when it last said that it runs
    ended: Ended | None = None
    ended_at: float | None = None
    trace_id: str | None = None
    tokens: int = 0
    usd: float = 0.0
    is_dispatched: bool = False  # the log says that its message was sent
    is_registered: bool = False  # its worker was in the registry

    @property
    def id(self) -> SideId:
        return SideId(worker=self.worker, delivery=self.delivery, task_sequence=self.task_sequence)


class Conflict(Frozen):
    """All that is known about one attempt that was assigned more than once, and what was decided."""

    request_id: RequestId
    task_id: TaskId
    attempt: int = Field(ge=0)  # 0: not about an attempt, but about tasks that are the same work
    kinds: tuple[ConflictKind, ...] = ()
    sides: tuple[Side, ...] = Field(default=(), max_length=MAX_SIDES)
    more_sides: bool = False  # there were others
    tasks: tuple[TaskId, ...] = ()  # of `same_work`
    succeeded: SideId | None = None  # whose success of the task counts …
    succeeded_at: float | None = None  # … since when
    answered_at: float | None = None
    keep: SideId | None = None
    stops: tuple[SideId, ...] = ()  # those that were told to stop
    why: str = ""
    found_at: float = 0.0
    updated_at: float = 0.0

    @property
    def attempt_id(self) -> AttemptId:
        return AttemptId(self.request_id, self.task_id, self.attempt)

    @property
    def key(self) -> str:
        """In the bucket."""
        return str(self.attempt_id)

    def side(self, side_id: SideId | None) -> Side | None:
        return next((side for side in self.sides if side.id == side_id), None)
