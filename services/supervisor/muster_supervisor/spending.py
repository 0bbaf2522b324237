"""The supervisor's own calls of a model: each is reserved in the log before it is made, and limited to what is left.

`paying(owner, purpose)` is a model like any other; whoever plans, refines, reviews, judges or composes asks it and
writes its `usage` with what came of the calls. That entry settles the reservation (muster_protocol/fold/budget.py);
if it never comes, the next owner charges what was reserved. A request without a budget pays no entry for this, and
rules, which cost nothing, are not reserved.
"""

import asyncio
import logging
import math
from typing import Literal

from muster_agent.budget import Limit, Meter, estimated_tokens, within_budget
from muster_agent.errors import ModelAway
from muster_agent.limiting.waiter import Caller, Waiting
from muster_agent.models.port import Ask, Model, Reply
from muster_agent.models.wrapped import Wrapped
from muster_protocol.fold import Left
from muster_protocol.fold.budget import left_for
from muster_protocol.messages import Budget, Reserved, Usage
from muster_protocol.workers.breaker import BreakerEvent
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")


class Paying(Wrapped):
    """A model that is asked for one purpose of an owner."""

    def __init__(self, owner: Owner, model: Model, purpose: str, meter: Meter) -> None:
        super().__init__(model)
        self._owner = owner
        self._purpose = purpose
        self._meter = meter
        self._waits_for = ""

    @property
    def usage(self) -> Usage:
        """What its calls did cost under this term, also those that came to nothing."""
        return self._meter.usage

    async def ask(self, ask: Ask) -> Reply:
        self._check_provider()
        if self._model.is_llm and self._is_limited():
            ask = within_budget(ask, self._model, self.usage, await self._reserve(ask))
        asked = Meter(asking=self.provider)  # nobody, while the call waits for its turn
        try:
            reply = await self._limited(asked).ask(ask)
        except ModelAway:
            self._tell_breaker("failed")
            raise
        except asyncio.CancelledError:
            if self._model.is_llm and self._is_limited() and asked.asking == self.provider:
                self._meter.usage += self._most(ask)  # the provider goes on writing what nobody waits for
            raise
        self._meter.usage += reply.usage
        self._tell_breaker("answered")
        return reply

    def _limited(self, asked: Meter) -> Model:
        """The model, asked when the limits of its provider allow it."""
        owner = self._owner
        if owner.resources.gates is None:
            return self._model
        return owner.resources.gates.limited(self._model, Caller(deadline=owner.deadline, meter=asked, tell=self._tell))

    def _tell(self, waiting: Waiting | None) -> None:
        """Log what a call waits for, once for each limit."""
        what = "" if waiting is None else waiting.what
        if waiting is not None and what != self._waits_for:
            owner = self._owner
            log.info("… %s  request %s: %s", self._purpose, owner.request_id, waiting.text(owner.now()))
        self._waits_for = what

    def _check_provider(self) -> None:
        """Raise, without a call, while the provider does not answer; when its time has come this call is the probe."""
        breakers, now = self._owner.resources.breakers, self._owner.now()
        breaker = breakers.of_provider(self.provider)
        if breaker.is_closed:
            return
        if (wait := breaker.free_at - now) > 0:
            reason = f"provider '{self.provider}' does not answer, the next try is in {wait:.0f} s"
            raise ModelAway(reason, retry_after_seconds=math.inf)  # whoever asks does not wait, but says so at once
        self._tell_breaker("probed")

    def _tell_breaker(self, what: Literal["failed", "answered", "probed"]) -> None:
        if self.provider:
            event = BreakerEvent(what, self._owner.now())
            self._owner.resources.breakers.observe_provider(self.provider, event)

    def _is_limited(self) -> bool:
        budget = self._budget()
        return budget.tokens is not None or budget.usd is not None

    def _budget(self) -> Budget:
        owner = self._owner
        if owner.state.plan_entry is not None:
            return owner.state.plan_entry.budget
        return Budget() if owner.request is None else owner.request.budget

    async def _reserve(self, ask: Ask) -> Limit:
        """What all calls for the purpose may cost, this one included; written before it is made, unless it stands."""
        owner, left = self._owner, self._left()
        most = self.usage + self._most(within_budget(ask, self._model, self.usage, Limit(*left)))
        wanted = left.grant(most.tokens, most.usd)
        tokens, usd = (None if left.tokens is None else wanted.tokens), (None if left.usd is None else wanted.usd)
        standing = owner.state.purposes.get(self._purpose)
        if standing is None or (standing.tokens or 0) < (tokens or 0) or (standing.usd or 0.0) < (usd or 0.0):
            await owner.append(Reserved(attempts=(), purpose=self._purpose, tokens=tokens, usd=usd))
            owner.check()
            standing = owner.state.purposes[self._purpose]
        return Limit(standing.tokens, standing.usd)

    def _left(self) -> Left:
        """What nobody else has spent or set aside."""
        state, budget = self._owner.state, self._budget()
        if state.plan_entry is not None:
            return left_for(state, self._purpose)
        return Left(  # the log does not know the budget yet
            None if budget.tokens is None else budget.tokens - state.usage.tokens,
            None if budget.usd is None else budget.usd - state.usage.usd,
        )

    def _most(self, ask: Ask) -> Usage:
        """The most that a call can cost."""
        asked, price = estimated_tokens(ask), self._model.price
        usd = 0.0 if price is None else price.most_usd(asked, ask.max_tokens)
        return Usage(input_tokens=asked, output_tokens=ask.max_tokens, usd=usd, model_calls=1)


def paying(owner: Owner, purpose: str) -> Paying:
    """The supervisor's model for a purpose; under one term the same purpose goes on with what it has spent."""
    meter = owner.meters.setdefault((owner.term, purpose), Meter())
    return Paying(owner, owner.resources.model, purpose, meter)
