"""Every message of the wire; one file for each subject that they travel on, and several for the log."""

from muster_protocol.messages.answer import Answer, ConfidenceParts, Selected, TaskOutcome
from muster_protocol.messages.base import MOST, Message, Output, Usage, invalid
from muster_protocol.messages.callback import Callback, CalledBack
from muster_protocol.messages.control import Abort, Cancel, Check, Note, ReassignTask, Reply, RetryTask
from muster_protocol.messages.errors import ErrorReport
from muster_protocol.messages.events import ConflictFound, HandedBack, Progress, Refused, Started, ToolUsed
from muster_protocol.messages.growth import Extended, GrowthLimits
from muster_protocol.messages.log import (
    COMPOSE,
    PLAN,
    Dispatch,
    Dispatched,
    PlanRecorded,
    Reservation,
    Reserved,
    Revision,
    Taken,
    refining,
    reviewing,
)
from muster_protocol.messages.people import Decision, Question
from muster_protocol.messages.request import Budget, Request
from muster_protocol.messages.result import Failure, Result
from muster_protocol.messages.task import Task
from muster_protocol.messages.turns import Claim, Effect, ModelTurn, ToolOutputs
from muster_protocol.status_words import AnswerStatus, ResultStatus

LogBody = Taken | PlanRecorded | Question | Reserved | Dispatched | Revision | Decision | Result | Extended | Answer
AttemptEvent = Started | HandedBack | Refused | Progress | ToolUsed | ConflictFound
Event = AttemptEvent | CalledBack
TurnBody = Claim | ModelTurn | ToolOutputs | Effect
Control = Cancel | Reply | Note | RetryTask | ReassignTask | Abort | Check

LOG_KINDS: dict[str, type[LogBody]] = {
    cls.kind: cls
    for cls in (
        Taken,
        PlanRecorded,
        Question,
        Reserved,
        Dispatched,
        Revision,
        Decision,
        Result,
        Extended,
        Answer,
    )
}
EVENT_KINDS: dict[str, type[Event]] = {
    cls.kind: cls for cls in (Started, HandedBack, Refused, Progress, ToolUsed, ConflictFound, CalledBack)
}
CONTROL_KINDS: dict[str, type[Control]] = {
    cls.kind: cls for cls in (Cancel, Reply, Note, RetryTask, ReassignTask, Abort, Check)
}
TURN_KINDS: dict[str, type[TurnBody]] = {cls.kind: cls for cls in (Claim, ModelTurn, ToolOutputs, Effect)}
MESSAGES: tuple[type[Message], ...] = (
    Request,
    Task,
    Callback,
    *LOG_KINDS.values(),
    ErrorReport,
    *EVENT_KINDS.values(),
    *CONTROL_KINDS.values(),
    *TURN_KINDS.values(),
)

__all__ = [
    "COMPOSE",
    "CONTROL_KINDS",
    "EVENT_KINDS",
    "LOG_KINDS",
    "MESSAGES",
    "MOST",
    "PLAN",
    "TURN_KINDS",
    "Abort",
    "Answer",
    "AnswerStatus",
    "AttemptEvent",
    "Budget",
    "Callback",
    "CalledBack",
    "Cancel",
    "Check",
    "Claim",
    "ConfidenceParts",
    "ConflictFound",
    "Control",
    "Decision",
    "Dispatch",
    "Dispatched",
    "Effect",
    "ErrorReport",
    "Event",
    "Extended",
    "Failure",
    "GrowthLimits",
    "HandedBack",
    "LogBody",
    "Message",
    "ModelTurn",
    "Note",
    "Output",
    "PlanRecorded",
    "Progress",
    "Question",
    "ReassignTask",
    "Refused",
    "Reply",
    "Request",
    "Reservation",
    "Reserved",
    "Result",
    "ResultStatus",
    "RetryTask",
    "Revision",
    "Selected",
    "Started",
    "Taken",
    "Task",
    "TaskOutcome",
    "ToolOutputs",
    "ToolUsed",
    "TurnBody",
    "Usage",
    "invalid",
    "refining",
    "reviewing",
]
