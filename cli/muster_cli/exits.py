"""Which exit code an answer's status becomes."""

from muster_bus.process.command import Exit
from muster_protocol.status_words import AnswerStatus

EXITS = {
    AnswerStatus.DONE: Exit.DONE,
    AnswerStatus.PARTIAL: Exit.PARTIAL,
    AnswerStatus.FAILED: Exit.FAILED,
    AnswerStatus.CANCELLED: Exit.CANCELLED,
}


def exit_of(status: AnswerStatus) -> Exit:
    return EXITS[status]
