"""The gates of all providers that a team's models ask, as one process passes them."""

import asyncio
import logging
from collections.abc import Callable

from muster_agent.limiting.gate import Gate
from muster_agent.limiting.limited import Limited
from muster_agent.limiting.waiter import Caller
from muster_agent.models.port import Model
from muster_agent.team.schema import ModelRole, Team
from muster_bus.buckets.limits import LimitStore
from muster_bus.connection import Bus
from muster_protocol.fields import nearest

log = logging.getLogger("muster.limits")


class Gates:
    """One gate for each provider, made when its model is asked for the first time."""

    def __init__(self, bus: Bus, team: Team) -> None:
        self._bus = bus
        self._team = team
        self._by_provider: dict[str, Gate] = {}

    def limited(self, model: Model, caller: Caller) -> Model:
        """The model, asked when its provider's limits allow it; one that asks nobody has none."""
        return Limited(model, self._gate(model.provider), caller) if model.provider else model

    def warn_of_unknown(self, provider_of: Callable[[str], str]) -> None:
        """Limits of a provider that no model asks hold nothing: its name may be misspelt."""
        models = {self._team.supervisor.model}
        for role in self._team.roles:
            if isinstance(role, ModelRole):
                models |= {role.model, *role.fallbacks, role.other_model or role.model}
        known = sorted({name for model in models if (name := provider_of(model))})
        for name in self._team.rate_limits if known else ():
            if name not in known:
                text = "rate_limits.%s limits nothing: no model of this team asks that provider%s"
                log.warning(text, name, nearest(name, known))

    async def close(self) -> None:
        """Give back what this process holds."""
        await asyncio.gather(*(gate.close() for gate in self._by_provider.values()))

    def _gate(self, provider: str) -> Gate:
        if provider not in self._by_provider:
            spec = self._team.rate_limits.get(provider)
            store = LimitStore(self._bus, self._team.team, provider)
            self._by_provider[provider] = Gate(store, provider, spec.limits if spec else None)
        return self._by_provider[provider]
