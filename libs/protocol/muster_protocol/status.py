"""How requests, tasks and attempts stand: one vocabulary for the log, the API and the command line."""

from enum import StrEnum


class ResultStatus(StrEnum):
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AnswerStatus(StrEnum):
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
