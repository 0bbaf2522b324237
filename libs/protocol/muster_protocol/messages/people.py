"""On `results.<request_id>`: what people are asked and what they said, in the log."""

import hashlib
from typing import Annotated, ClassVar, Literal

from pydantic import StringConstraints

from muster_protocol import headers as h
from muster_protocol.messages.base import Output
from muster_protocol.messages.entry import LogEntry
from muster_protocol.plan import Plan
from muster_protocol.sender import Origin
from muster_protocol.subjects import Tag, TaskId

APPROVAL = "plan"  # the cause of the question whether a plan is carried out
APPROVE, EDIT, REJECT = "approve", "edit", "reject"
QuestionId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
ANYBODY = "anybody who may write on control"
SERVICES = ("supervisor/", "worker/")  # they ask; people reply and note, through a client or the coordinator
MAX_NOTES, MAX_NOTE = 20, 2000  # of one request: the last ones, and the characters of each
PERSON_SECONDS = 24 * 3600.0  # what waiting for people adds to a deadline at most, where nobody says another number


class Question(LogEntry):
    """Somebody is to reply. The first one with an id counts; the id is the hash of its cause."""

    kind: ClassVar[str] = "question"
    free_text: ClassVar[tuple[str, ...]] = ("text",)

    id: QuestionId
    cause: str
    text: str
    choices: tuple[str, ...] = ()  # none: any value is a reply
    task_id: TaskId | None = None
    attempt: int | None = None
    who: str = ANYBODY
    until: float
    otherwise: str = ""  # the choice that counts if nobody has replied by then

    def id_for(self, origin: Origin) -> str:
        return f"{origin.request_id}.{self.kind}.{origin.term}.{self.id}"

    def summary_headers(self) -> dict[str, str]:
        return {h.QUESTION: self.id, **({h.APPROVAL: "1"} if self.cause == APPROVAL else {})}


class Decision(LogEntry):
    """What somebody said on `control`, copied into the log before it is acted upon.

    `refused` is something that cannot be done, with the reason: a question stays open, a task stays as it is.
    `default` is nobody's: what a question says for the case that nobody replies in time.
    """

    kind: ClassVar[str] = "decision"
    free_text: ClassVar[tuple[str, ...]] = (
        "reason",
        "value",
        "plan.goal",
        "plan.tasks.description",
        "plan.tasks.expected_output",
        "plan.final_instruction",
        "plan.tasks.inputs",
        "plan.tasks.label",
        "warnings",
    )

    decision: Literal["cancel", "reply", "refused", "default", "note", "retry", "reassign"]
    control_sequence: int  # 0: nobody said it
    by: str
    reason: str = ""  # of a note its text
    said_at: float = 0.0  # when the broker stored what was said; 0: not known
    question: QuestionId | Literal[""] = ""
    choice: str = ""
    value: Output = None
    plan: Plan | None = None  # that is carried out instead, routed
    warnings: tuple[str, ...] = ()  # about that plan
    task_id: TaskId | None = None  # that is tried again or given to somebody else
    attempt: int | None = None  # its next one: what was said before another began comes too late
    role: Tag | None = None  # who gets it
    worker: Tag | None = None
    timeout_seconds: float | None = None  # of its attempts there; None: the request's

    def id_for(self, origin: Origin) -> str:
        of = f".{self.question}" if self.control_sequence == 0 else ""
        return f"{origin.request_id}.{self.kind}.{origin.term}.{self.control_sequence}{of}"

    def summary_headers(self) -> dict[str, str]:
        """Which decision it is, if no cancel; of a reply that counts the question, and `rejected` if it says no."""
        headers = {} if self.decision == "cancel" else {h.DECISION: self.decision}
        if self.decision in ("reply", "default"):
            headers |= {h.QUESTION: self.question, **({h.REJECTED: "1"} if self.choice == REJECT else {})}
        if self.decision == "reassign" and self.task_id is not None and self.attempt is not None:
            headers |= {h.TASK: self.task_id, h.ATTEMPT: str(self.attempt)}
        return headers


def add_note(notes: list[str], text: str) -> None:
    """One note more; of too many the last ones stay."""
    notes.append(text[:MAX_NOTE])
    del notes[:-MAX_NOTES]


def question_id(request_id: str, cause: str) -> str:
    """The same for everybody who asks the same."""
    return hashlib.sha256(f"{request_id}\n{cause}".encode()).hexdigest()[:16]
