"""On `results.<request_id>`: the entries of a request's log."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from muster_protocol import headers as h
from muster_protocol.messages.base import Usage
from muster_protocol.messages.entry import LogEntry
from muster_protocol.messages.growth import GrowthLimits
from muster_protocol.messages.people import PERSON_SECONDS
from muster_protocol.messages.request import Budget
from muster_protocol.plan import Frozen, Plan, Retry
from muster_protocol.sender import Origin
from muster_protocol.subjects import Priority, Purpose, Tag, TaskId, TeamName


class Taken(LogEntry):
    """A supervisor has taken the request, or hands it back; the entry's sequence is its term.

    `alone` is a note that takes nothing: the supervisor is about to take a request that was taken in vain before, and
    takes no other such request meanwhile. If it dies of that, it was this request.
    """

    kind: ClassVar[str] = "taken"
    free_text: ClassVar[tuple[str, ...]] = ("asked",)

    instance: str
    delivery: int
    team: TeamName
    deadline: float
    request_hash: str
    request_sequence: int  # of the message in REQUESTS that is the lease
    stored_at: float = 0.0  # when the broker stored that message; 0: not known
    handed_back: bool = False
    alone: bool = False
    asked: str = ""  # the beginning of what was asked, for lists: the request is gone once it is answered
    asked_by: str = ""  # the sender of the request; empty when somebody published it without headers

    def id_for(self, origin: Origin) -> str:
        what = f"back.{origin.term or 0}" if self.handed_back else "alone" if self.alone else self.kind
        nonce = f".{origin.nonce}" if origin.nonce else ""
        return f"{origin.request_id}.{what}.{self.instance}.{self.request_sequence}.{self.delivery}{nonce}"


class PlanRecorded(LogEntry):
    """The plan. The first valid one in the log is the plan."""

    kind: ClassVar[str] = "plan"
    free_text: ClassVar[tuple[str, ...]] = (
        "plan.goal",
        "plan.tasks.description",
        "plan.tasks.expected_output",
        "plan.final_instruction",
        "text",
        "plan.tasks.inputs",
        "plan.tasks.label",
        "warnings",
        "answer_schema",
    )

    plan: Plan
    text: str = ""
    team: TeamName
    request_hash: str
    deadline: float
    in_flight: int = Field(ge=1)
    priority: Priority = "normal"
    max_attempts: int = Field(default=3, ge=1)  # three failed attempts end a task that says nothing else
    retry: dict[Tag, Retry] = Field(default_factory=dict[Tag, Retry])  # what holds for the tasks of a tag
    other_models: dict[Tag, str] = Field(default_factory=dict[Tag, str])  # for what a role's own model refuses
    timeout_seconds: float = Field(default=300.0, gt=0)
    budget: Budget = Budget()
    growth: GrowthLimits = GrowthLimits()
    answer_schema: dict[str, Any] | None = None  # what the output of the answer is to fit
    approve: bool = False  # a person has to approve it before anything is dispatched
    person_seconds: float = Field(default=PERSON_SECONDS, ge=0)  # waiting for people adds so much; 0: the clock runs
    planner: str = ""
    warnings: tuple[str, ...] = ()
    same_work: tuple[tuple[TaskId, ...], ...] = ()  # groups of tasks that say the same
    usage: Usage = Usage()

    def summary_headers(self) -> dict[str, str]:
        """Whether there is something in the body for whoever lists conflicts."""
        return {h.SAME_WORK: str(len(self.same_work))} if self.same_work else {}


class Reservation(Frozen):
    """One attempt that is about to be dispatched, and what is set aside for it."""

    task_id: TaskId
    attempt: int
    timeout_seconds: float
    tokens: int | None = None
    usd: float | None = None
    role: Tag | None = None  # that was chosen of several; None: the task's own tag
    why: str | None = None
    model: str | None = None  # another than the task's or the role's own, which refused
    wanted_seconds: float | None = None  # its own timeout, where the request ends sooner; a wait for people moves that


PLAN, COMPOSE = "plan", "compose"  # purposes of the owner's own calls of a model


def refining(task_id: str, attempt: int) -> str:
    """The purpose of describing the next attempt of a task anew."""
    return f"refine:{task_id}.{attempt}"


def reviewing(number: int) -> str:
    """The purpose of a look at the results after a round."""
    return f"review:{number}"


class Reserved(LogEntry):
    """These attempts are about to be dispatched, or a model is about to be called for a purpose of the owner's."""

    kind: ClassVar[str] = "reserved"
    free_text: ClassVar[tuple[str, ...]] = ("attempts.why",)

    attempts: tuple[Reservation, ...]
    purpose: Purpose = ""  # plan, refine:<task>.<attempt>, review:<n>, failure:<task>, compose
    tokens: int | None = Field(default=None, ge=0)  # the most that all calls for the purpose may cost under this term
    usd: float | None = Field(default=None, ge=0)

    def id_for(self, origin: Origin) -> str:
        what = f".{self.purpose}.{self.tokens}.{self.usd}" if self.purpose else _first_of(self.attempts)
        nonce = f".{origin.nonce}" if origin.nonce else ""  # what the fold refused may be reserved again
        return f"{origin.request_id}.{self.kind}.{origin.term}{what}{nonce}"


class Dispatch(Frozen):
    """Where the task message of an attempt is stored."""

    task_id: TaskId
    attempt: int
    sequence: int


class Dispatched(LogEntry):
    """These attempts are stored in TASKS."""

    kind: ClassVar[str] = "dispatched"

    attempts: tuple[Dispatch, ...]

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}{_first_of(self.attempts)}"


class Revision(LogEntry):
    """The next attempt of a failed task gets this description; or there will be none, because words cannot help."""

    kind: ClassVar[str] = "revision"
    free_text: ClassVar[tuple[str, ...]] = ("description", "reason")

    task_id: TaskId
    attempt: int
    description: str
    not_before: float
    reason: str = ""
    usage: Usage = Usage()
    gives_up: bool = False

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}{_first_of((self,))}"


def _first_of(attempts: Sequence[Reservation | Dispatch | Revision]) -> str:
    """The attempt that names an entry: an owner reserves, dispatches and revises each once in a term."""
    return f".{attempts[0].task_id}.{attempts[0].attempt}" if attempts else ""
