"""The fold: a request's log, entry by entry, into its state."""

from muster_protocol.fold.state import TERMINAL, Attempt, Entry, RequestState, TaskState, TaskStatus, fold

__all__ = ["TERMINAL", "Attempt", "Entry", "RequestState", "TaskState", "TaskStatus", "fold"]
