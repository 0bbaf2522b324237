"""The fold: a request's log, entry by entry, into its state."""

from muster_protocol.fold.budget import Left, left_of
from muster_protocol.fold.counting import is_counted, is_stopped, settled_by
from muster_protocol.fold.gathering import context_of
from muster_protocol.fold.growth import is_complete, pending_growth
from muster_protocol.fold.growth_rules import fault_of
from muster_protocol.fold.moves import advance, last_moment, next_timer
from muster_protocol.fold.rules import apply, fold
from muster_protocol.fold.state import FINAL, Attempt, Entry, RequestState, TaskPhase, TaskState

__all__ = [
    "FINAL",
    "Attempt",
    "Entry",
    "Left",
    "RequestState",
    "TaskPhase",
    "TaskState",
    "advance",
    "apply",
    "context_of",
    "fault_of",
    "fold",
    "is_complete",
    "is_counted",
    "is_stopped",
    "last_moment",
    "left_of",
    "next_timer",
    "pending_growth",
    "settled_by",
]
