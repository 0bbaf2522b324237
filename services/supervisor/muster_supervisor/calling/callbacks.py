"""What a supervisor does about `callback_url`: it refuses what it may not call, and stores what is to be called.

The message on `callbacks.<team>` is stored after the answer is in the log and before the request is acknowledged. So
whoever acknowledges a request stores it, also after a takeover: the un-acked message is the request, and names the URL.
"""

import asyncio
import logging

from pydantic import ValidationError

from muster_agent.team.schema import Team
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_protocol import headers as h
from muster_protocol.calling.addresses import FIELD, Target, target_of
from muster_protocol.errors import Invalid
from muster_protocol.fold import RequestState
from muster_protocol.messages import Callback
from muster_protocol.plan import Frozen

log = logging.getLogger("muster.supervisor")

NO_HOSTS = (
    "this team calls nobody back; list the hosts in its team file, `callbacks: {hosts: [example.org]}`, or leave it out"
)
NO_SECRET = "the supervisor has no MUSTER_CALLBACK_SECRET to sign with; set it where the supervisor runs"
_MAY_NAME_IT = (FIELD.encode(), b"\\u")  # a name may be written with escapes


class _Asks(Frozen):
    """As much of a request as is needed when the rest is invalid."""

    callback_url: str | None = None


class Callbacks:
    """The callbacks of one team, as one supervisor sees them."""

    def __init__(self, bus: Bus, team: Team, secret: str = "") -> None:
        self.bus = bus
        self.team = team
        self.secret = secret

    def target(self, url: str) -> Target:
        """What a URL names, if the team may call it; else Invalid."""
        rules = self.team.callbacks
        if rules is None:
            raise Invalid(NO_HOSTS, FIELD)
        return target_of(url, rules.hosts, has_http=rules.http)

    def check(self, url: str | None) -> None:
        """Raise if a request asks for a callback that would never be sent."""
        if url is not None:
            self.target(url)
            if not self.secret:
                raise Invalid(NO_SECRET, FIELD)

    async def store(self, delivery: Delivery, state: RequestState) -> None:
        """Store what an answered request asks for; its message is acknowledged only afterwards.

        The body must be the one that the answer is about. A request that was refused because of its URL gets none;
        one that was planned was allowed, and whoever may deliver it by then judges that again.
        """
        answer = state.answer
        if answer is None or answer.request_hash != h.request_hash(delivery.subject, delivery.headers, delivery.data):
            return
        url = await _url_of(self.bus, delivery)
        if url is None or (state.plan_entry is None and not self._is_callable(url)):
            return
        origin = self.bus.origin(state.request_id)._replace(team=self.team.team)
        carrier = self.bus.tracing.request(state.request_id, delivery.headers).carrier
        await self.bus.store(Callback(request_id=state.request_id, callback_url=url), origin, carrier=carrier)

    def _is_callable(self, url: str) -> bool:
        try:
            self.check(url)
        except Invalid:
            return False
        return True


async def _url_of(bus: Bus, delivery: Delivery) -> str | None:
    """The URL that a request names, also one that is invalid otherwise."""
    reference = (delivery.headers or {}).get(h.BODY_REF)
    try:
        body = delivery.data if reference is None else await bus.bodies.get(reference)
    except Invalid:
        return None  # nobody has the body any more, and the request was answered so
    if not any(name in body for name in _MAY_NAME_IT):
        return None
    try:
        return (await asyncio.to_thread(_Asks.model_validate_json, body)).callback_url
    except ValidationError:
        return None
