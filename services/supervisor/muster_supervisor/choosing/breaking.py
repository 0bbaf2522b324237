"""The breakers of the team's roles and of their providers: what this supervisor sees, and what the others saw.

A failure that names a provider counts for the provider, over all roles, and for the role: a model may be away alone.
While the provider is known not to answer it counts for the provider only, so that the role is not left alone longer
than its provider is; and so for a role that has another model, of another provider, to go on with.

A result that says nothing new costs a look into a dictionary. What changes a breaker counts here at once, is added to
the bucket in the background, and what others have added is read twice a second while there are requests.
"""

import asyncio
import logging
from collections.abc import Callable

from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.buckets.breakers import add_events, read_breakers
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError
from muster_protocol.messages import Result, ResultStatus
from muster_protocol.workers.breaker import PROVIDER, Breaker, BreakerEvent, event_of
from muster_supervisor.choosing.measuring import role_of
from muster_supervisor.choosing.providers import Providers

log = logging.getLogger("muster.supervisor")

READ_SECONDS = 0.5  # between two looks at what others have added, while there are requests
MOST_UNSHARED = 100  # events of one role, while the broker takes none: older ones are settled by then
CLOSED = Breaker()


class Breakers:
    """The breakers of one team."""

    def __init__(self, bus: Bus, team: Team, providers: Providers | None = None) -> None:
        self._bus = bus
        self._team = team
        self.providers = providers or Providers(team)
        self._stored: dict[str, Breaker] = {}
        self._unshared: dict[str, list[BreakerEvent]] = {}
        self._known: dict[str, Breaker] = {}  # both together
        self._on_freed: Callable[[], None] = lambda: None
        self._is_new = asyncio.Event()
        self._sharing: asyncio.Task[None] | None = None
        self._is_silent = False  # the broker takes nothing, which was said
        self.are_closed = True
        self._is_quiet = True  # all are closed, and nothing counts against any of them

    def start(self, is_busy: Callable[[], bool], on_freed: Callable[[], None]) -> None:
        """Share in the background; `on_freed` is called when a role may be given attempts earlier than was known."""
        self._on_freed = on_freed
        self._sharing = supervised(self._share_for_ever(is_busy), "sharing what roles do not answer")

    def stop(self) -> None:
        if self._sharing is not None:
            self._sharing.cancel()

    def of(self, role: str) -> Breaker:
        return self._known.get(role, CLOSED)

    def of_provider(self, provider: str) -> Breaker:
        return self._known.get(f"{PROVIDER}{provider}", CLOSED) if provider else CLOSED

    def holder(self, role: str) -> tuple[str, Breaker]:
        """What a role waits for the longest, as people call it: itself, or its provider if it can not do without."""
        own, provider = self.of(role), self.providers.of_role(role)
        others = (self.providers.of_model(model) for model in self.providers.spares(role))
        theirs = min((self.of_provider(one) for one in (provider, *others)), key=lambda breaker: breaker.free_at)
        return (f"provider '{provider}'", theirs) if theirs.free_at > own.free_at else (f"role '{role}'", own)

    def free_at(self, role: str) -> float:
        """From when on a role may be given an attempt; 0: now."""
        return self.holder(role)[1].free_at

    def spare_of(self, role: str, now: float) -> str | None:
        """The model that a role uses while the provider of its own does not answer; None: its own."""
        if self.of_provider(self.providers.of_role(role)).free_at <= now:
            return None
        return next((model for model in self.providers.spares(role) if self._answers(model, now)), None)

    def _answers(self, model: str, now: float) -> bool:
        return self.of_provider(self.providers.of_model(model)).free_at <= now

    def observe(self, result: Result, at: float, *, by_owner: bool, model: str | None = None) -> None:
        """Take what a result says that counts for its attempt; `model` is what it was to use in place of the role's."""
        if self._is_quiet and result.status is ResultStatus.DONE:
            return  # where nothing has failed, an answer says nothing new
        event = event_of(result, at, by_owner=by_owner)
        role = None if event is None else role_of(self._team, result)
        if event is None or role is None:
            return
        asked = self.providers.of_role(role) if model is None else self.providers.of_model(model)
        if "/" in result.model:  # a worker without the key of the first model asks another one
            asked = result.model.partition("/")[0]
        away = result.error.provider if result.error is not None and event.what == "failed" else None
        if away is None or not (self._is_known_away(away) or self.providers.spares(role)):
            self._see(role, event)
        if provider := away or (asked if event.what == "answered" and result.usage.model_calls else ""):
            self.observe_provider(provider, event)

    def observe_provider(self, provider: str, event: BreakerEvent) -> None:
        """Take what a call of a model came to."""
        self._see(f"{PROVIDER}{provider}", event)

    def probe(self, role: str, at: float) -> None:
        """A role that is half-open, or whose provider is, is given an attempt; nobody gives it another meanwhile."""
        if not self.of(role).is_closed:
            self._see(role, BreakerEvent("probed", at))
        provider = self.providers.of_role(role)
        if self._is_known_away(provider) and self.spare_of(role, at) is None:
            self.observe_provider(provider, BreakerEvent("probed", at))

    def _is_known_away(self, provider: str) -> bool:
        return not self.of_provider(provider).is_closed

    def _see(self, role: str, event: BreakerEvent) -> None:
        before = self.of(role)
        after = before.after(event)
        if after is before or after == before:
            return
        events = self._unshared.setdefault(role, [])
        events.append(event)
        del events[:-MOST_UNSHARED]
        self._know(role, after)
        self._is_new.set()

    def _know(self, role: str, breaker: Breaker) -> None:
        before, self._known[role] = self.of(role), breaker
        self.are_closed = all(one.is_closed for one in self._known.values())
        self._is_quiet = self.are_closed and not any(one.failures for one in self._known.values())
        if breaker.openings > before.openings:
            seconds = breaker.half_open_at - breaker.opened_at
            log.warning("… %s does not answer: it gets no attempt for %g s, then one", _called(role), seconds)
        elif breaker.is_closed and not before.is_closed:
            log.info("… %s answers again", _called(role))
        if breaker.free_at < before.free_at:
            self._on_freed()

    async def _share_for_ever(self, is_busy: Callable[[], bool]) -> None:
        is_read = False
        while True:
            try:
                if is_busy() or not is_read:
                    self._stored = await read_breakers(self._bus, self._team.team)
                    is_read = True
                await self._share()
                for role in {*self._stored, *self._known}:
                    self._know(role, self._stored.get(role, CLOSED).after(*self._unshared.get(role, ())))
                self._is_silent = False
            except MusterError as error:
                self._say_unshared(error)
                await asyncio.sleep(READ_SECONDS)
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await self._is_new.wait()
            except TimeoutError:
                pass
            self._is_new.clear()

    async def _share(self) -> None:
        """Add what was seen of each role to what is stored; what is seen meanwhile waits for the next turn."""
        for role, events in list(self._unshared.items()):
            sent = tuple(events)
            self._stored[role] = await add_events(self._bus, self._team.team, role, sent)
            if left := [event for event in self._unshared.pop(role) if event not in sent]:
                self._unshared[role] = left

    def _say_unshared(self, error: MusterError) -> None:
        if not self._is_silent:
            text = "… roles  which of them do not answer is not shared, next try in %g s: %s"
            log.warning(text, READ_SECONDS, error)
        self._is_silent = True


def _called(key: str) -> str:
    """What a breaker is of, as a line of the log names it."""
    return f"provider '{key.removeprefix(PROVIDER)}'" if key.startswith(PROVIDER) else f"role    '{key}'"
