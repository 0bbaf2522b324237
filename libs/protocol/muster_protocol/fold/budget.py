"""What is left of a request's budget, and what is set aside of it for the supervisor's own model calls.

Before a model is called for a purpose (planning, refining, reviewing, composing), the owner writes how much that may
cost. From then on nobody else may spend it. The entry that holds what came of the calls also says what they did cost,
and takes the place of what was set aside. An owner that died has perhaps made its calls: the next `taken` charges what
it had set aside as spent. The fold grants no more than what is left, however many reservations were on their way at
once.
"""

from typing import NamedTuple

from muster_protocol.fold.state import RequestState, SetAside
from muster_protocol.messages import Reserved, Usage

MIN_USD = 1e-6  # less is a rounding error and pays for nothing


class Left(NamedTuple):
    """What nobody has spent or set aside; None where the request has no limit."""

    tokens: int | None
    usd: float | None

    @property
    def is_used_up(self) -> bool:
        return (self.tokens is not None and self.tokens <= 0) or (self.usd is not None and self.usd < MIN_USD)

    def grant(self, tokens: int | None, usd: float | None) -> SetAside:
        """As much as there is of what somebody asks for."""
        return SetAside(
            tokens if tokens is None or self.tokens is None else max(0, min(tokens, self.tokens)),
            usd if usd is None or self.usd is None else max(0.0, min(usd, self.usd)),
        )

    def without(self, tokens: int | None, usd: float | None) -> "Left":
        """What is left after that."""
        return Left(
            None if self.tokens is None else self.tokens - (tokens or 0),
            None if self.usd is None else self.usd - (usd or 0.0),
        )


UNLIMITED = Left(None, None)


def left_of(state: RequestState) -> Left:
    """What is left of the plan's budget; without a plan there is none in the log."""
    budget = None if state.plan_entry is None else state.plan_entry.budget
    if budget is None or (budget.tokens is None and budget.usd is None):
        return UNLIMITED
    return Left(
        None if budget.tokens is None else budget.tokens - state.usage.tokens - state.tokens_set_aside,
        None if budget.usd is None else budget.usd - state.usage.usd - state.usd_set_aside,
    )


def left_for(state: RequestState, purpose: str) -> Left:
    """What is left for a purpose: also what is set aside for it."""
    left, aside = left_of(state), state.purposes.get(purpose)
    return left if aside is None else left.without(-(aside.tokens or 0), -(aside.usd or 0.0))


def set_aside(state: RequestState, body: Reserved) -> None:
    """Set something aside for a purpose, in place of what the same owner had set aside for it before."""
    settle(state, body.purpose)
    granted = left_of(state).grant(body.tokens, body.usd)
    state.purposes[body.purpose] = granted
    _change(state, granted, 1)


def settle(state: RequestState, purpose: str) -> bool:
    """What the calls for a purpose did cost is in the log; False: nothing was set aside for it."""
    aside = state.purposes.pop(purpose, None) if state.purposes else None
    if aside is not None:
        _change(state, aside, -1)
    return aside is not None


def charge_all(state: RequestState) -> None:
    """An owner is gone: what it had set aside for its calls counts as spent."""
    for purpose, aside in list(state.purposes.items()):
        settle(state, purpose)
        state.usage += Usage(output_tokens=aside.tokens or 0, usd=aside.usd or 0.0, model_calls=1)


def _change(state: RequestState, aside: SetAside, sign: int) -> None:
    state.tokens_set_aside += sign * (aside.tokens or 0)
    state.usd_set_aside += sign * (aside.usd or 0.0)
