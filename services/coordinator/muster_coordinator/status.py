"""The words that say how a request stands. No other module of the coordinator spells them."""

from muster_protocol.fold import RequestState
from muster_protocol.messages import AnswerStatus

WAITING = "waiting"  # no supervisor has taken it
PLANNING = "planning"
OPEN = "open"
CANCELLING = "cancelling"
ENDED = AnswerStatus.DONE.value  # of an answer whose headers name no status


def status_of(state: RequestState) -> str:
    """How a request stands, by its log."""
    if state.answer is not None:
        return state.answer.status.value
    if state.last_sequence == 0:
        return WAITING
    if state.cancelled is not None:
        return CANCELLING
    return OPEN if state.plan else PLANNING
