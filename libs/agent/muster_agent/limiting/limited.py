"""A model whose calls wait until the limits of its provider let them start; it is a model like any other."""

from muster_agent.budget import estimated_tokens
from muster_agent.errors import RateLimited
from muster_agent.limiting.gate import Gate
from muster_agent.limiting.headers import Said, listening
from muster_agent.limiting.waiter import Caller, Permit, Waiting
from muster_agent.models.port import Ask, Model, Reply
from muster_agent.models.wrapped import Wrapped
from muster_bus.tracing import names
from muster_bus.tracing.tracing import event

NOTED_SECONDS = 0.05  # less is no wait that anybody would ask about


class Limited(Wrapped):
    """A model, asked on behalf of a caller."""

    def __init__(self, model: Model, gate: Gate, caller: Caller) -> None:
        super().__init__(model)
        self._gate = gate
        self._caller = caller

    async def ask(self, ask: Ask) -> Reply:
        """The reply. A call that the provider refuses as one too many is made again when all may ask again."""
        tokens = estimated_tokens(ask) + ask.max_tokens if self._gate.limits.tokens is not None else 0
        while True:
            permit = await self._permit(tokens)
            with listening() as said:
                try:
                    return await self._call(ask, permit, said)
                except RateLimited as refused:
                    seconds = refused.retry_after_seconds
                    if seconds is None:
                        seconds = said.seconds_until_reset(self._gate.now)
                    self._gate.refuse(seconds)

    async def _permit(self, tokens: int) -> Permit:
        self._caller.asks("")  # nobody is asked while it waits: a wait is no failure of the provider
        began, told = self._gate.now, list[Waiting]()

        def tell(waiting: Waiting | None) -> None:
            told[:] = [waiting] if waiting is not None else []
            self._caller.tell(waiting)

        try:
            permit = await self._gate.enter(tokens, self._caller.for_a_call(began, tell))
        finally:
            waited = self._gate.now - began
            if told:
                self._caller.tell(None)
            if told and waited >= NOTED_SECONDS:
                event(names.RATE_LIMIT, {names.SECONDS: round(waited, 3), names.REASON: f"waits for {told[0].what}"})
        self._caller.asks(self.provider)
        return permit

    async def _call(self, ask: Ask, permit: Permit, said: Said) -> Reply:
        used: int | None = None
        try:
            reply = await self._model.ask(ask)
            used = reply.usage.tokens
            return reply
        finally:
            self._gate.leave(permit, used, said.left)
