"""The fold: a request's log, entry by entry, into its state."""

from muster_protocol.fold.rules import apply, fold, is_stopped
from muster_protocol.fold.state import FINAL, Attempt, Entry, RequestState, TaskPhase, TaskState
from muster_protocol.fold.timers import advance, next_timer

__all__ = [
    "FINAL",
    "Attempt",
    "Entry",
    "RequestState",
    "TaskPhase",
    "TaskState",
    "advance",
    "apply",
    "fold",
    "is_stopped",
    "next_timer",
]
