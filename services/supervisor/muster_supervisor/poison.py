"""When a request is poison: it was taken several times without progress, so it may crash its supervisor. Pure."""

from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState
from muster_protocol.retry import MAX_TAKES


class Poison(Invalid):
    """The request is given up unread: reading it may be what kills."""

    error_class = "poison"


def may_be_poison(delivery: int) -> bool:
    """Whether this delivery number is high enough that the log is worth reading before the request's body is."""
    return delivery > MAX_TAKES


def poison_reason(state: RequestState, delivery: int, *, is_read: bool) -> str:
    """Why a request is given up as poison at this delivery; empty when it is not.

    Reading the body may be what crashes the supervisor, so takes are counted before it is read and once more when
    it was taken. The first count allows one more take if somebody took the request before: that owner got past the
    body, so the next one probably does too, and can answer with what is done by then.
    """
    unproductive = state.unproductive_takes(delivery)
    most = MAX_TAKES if is_read else MAX_TAKES + bool(state.term)
    if state.answer is not None or unproductive < most:
        return ""
    return f"the request was taken {unproductive} times without any progress: poison"
