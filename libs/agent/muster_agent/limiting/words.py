"""What a call waits for, in words."""

from muster_protocol.counted import counted
from muster_protocol.workers.rate_limits import WINDOW_SECONDS, Bound, Limits


def bound_text(provider: str, bound: Bound, limits: Limits) -> str:
    """What stands behind `waits for`: `anthropic's limit of 60 requests a minute`."""
    every = "a minute" if limits.window == WINDOW_SECONDS else f"in {limits.window:g} s"
    match bound:
        case Bound.REQUESTS:
            return f"{provider}'s limit of {counted(limits.requests or 0, 'request')} {every}"
        case Bound.TOKENS:
            return f"{provider}'s limit of {counted(limits.tokens or 0, 'token')} {every}"
        case Bound.CONCURRENT:
            return f"{provider}'s limit of {counted(limits.concurrent or 0, 'call')} at once"
        case Bound.REFUSED:
            return f"{provider}, which says that it is asked too often"
