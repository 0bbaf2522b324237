"""A client of Muster: it knows requests, answers and what happens between them, and nothing about NATS."""

import asyncio
import logging
import math
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

from muster_bus.bodies import MAX_INLINE, reference_of
from muster_bus.broker import queues
from muster_bus.connection import Bus
from muster_bus.process.settings import TraceSettings, process_settings, secrets_in_address
from muster_bus.publish import NoStream
from muster_bus.redact import KNOWN
from muster_bus.tracing import names
from muster_bus.tracing.tracing import OFF, Tracing, application_tracer
from muster_client.follow import Following, Update
from muster_client.overdue import Expected, in_time
from muster_client.speaker import Speaker
from muster_client.timeline import Timeline
from muster_client.timeline.read import read_timeline
from muster_client.view import RequestView, view
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import BrokerAway, Invalid, Misconfigured
from muster_protocol.fields import check_spelling, check_supported
from muster_protocol.fold import Entry, RequestState, apply
from muster_protocol.messages import (
    Answer,
    Budget,
    Request,
    Result,
    Taken,
)
from muster_protocol.messages.request import DEFAULT_DEADLINE_SECONDS
from muster_protocol.plan import Plan
from muster_protocol.sender import Origin, Sender
from muster_protocol.subjects import Priority
from muster_protocol.unfold import MapOver

log = logging.getLogger("muster.client")
T = TypeVar("T")

CONNECT_SECONDS = 3.0  # somebody may be sitting in front of it
GIVE_UP_AFTER_SECONDS = 30.0  # a broker that restarts is back within seconds, a cluster elects within ten
NO_STREAM_SECONDS = 5.0  # a broker that is just starting has its streams after a second
MAX_REMEMBERED = 10_000


class RequestFields(TypedDict, total=False):
    """What may be said about a request beside its text; see `docs/protocol.md`."""

    plan: Plan | dict[str, Any] | None
    map: MapOver | dict[str, Any] | None
    id: str | None
    priority: Priority | None
    deadline_seconds: float | None
    in_flight: int | None
    budget: Budget | dict[str, Any] | None
    approve: bool | None
    pause_for_people: bool | None
    num_tasks: int | None
    answer_schema: dict[str, Any] | None
    callback_url: str | None
    metadata: dict[str, Any] | None


class Client(Speaker):
    """One connection from which requests are asked."""

    def __init__(self, bus: Bus, *, team: str = "default") -> None:
        super().__init__(bus)
        self.team = team
        self.usual_deadline_seconds = DEFAULT_DEADLINE_SECONDS  # of requests that name none, until the log says it
        self._longest_deadline: float | None = None
        # Requests that are known to be kept, each with its deadline as far as we know.
        self._sent: OrderedDict[str, float] = OrderedDict()

    @classmethod
    async def connect(
        cls,
        url: str | None = None,
        *,
        team: str | None = None,
        name: str = "client",
        tracing: Tracing | None = None,
    ) -> Self:
        """Connect to `url`, else to MUSTER_NATS_URL, else to the local broker; raises BrokerAway.

        Asked is `team`, else MUSTER_TEAM, else `default`. Without `tracing` the variables of OpenTelemetry say where
        the spans of what is sent go. From now on the secrets of the environment and of the address are redacted in
        what this process sends.
        """
        sender = Sender("client", f"{subjects.as_id(name)[:48]}-{secrets.token_hex(4)}")
        settings = process_settings(os.environ)
        url = url or settings.broker_url
        KNOWN.add(secrets_in_address("MUSTER_NATS_URL", url))
        if tracing is None:
            tracing = _own_tracing(sender.instance, settings.trace)
        access = settings.access
        bus = await Bus.connect(url, sender, timeout=CONNECT_SECONDS, tracing=tracing, access=access)
        return cls(bus, team=team or settings.team or "default")

    async def submit(self, text: str | None = None, *, team: str | None = None, **fields: Unpack[RequestFields]) -> str:
        """Ask for text, a plan, or one template over many items; returns the request's id once it is kept for good."""
        asked = {"text": text, **{name: value for name, value in fields.items() if value is not None}}
        check_spelling(asked)
        return await self.send(Request.of(asked), team=team)

    async def send(self, request: Request, *, team: str | None = None) -> str:
        """Submit a request that is made already."""
        team = team or self.team
        if not subjects.is_id(team):
            raise Invalid(f"{team[:80]!r} is not a team's name, which stands in its file under `team`", "team")
        check_supported(request)
        await self._check_deadline(request)
        request_id = subjects.as_id(request.id or secrets.token_hex(8))
        subject = subjects.requests(team)
        if request.id:
            await self._check_id(request_id, subject, request)
        attributes = {
            **names.messaging("publish", subject, request_id),
            names.DESTINATION: subject,
            names.MESSAGE_ID: request_id,
            **self.bus.server,
        }
        with self.bus.tracing.publishing(names.publish_name(subject), attributes, request_id):
            await self._store(request, request_id, team)
        self._remember(request_id, self.bus.clock.now() + (request.deadline_seconds or self.usual_deadline_seconds))
        return request_id

    async def updates(self, request_id: str) -> AsyncGenerator[Update]:
        """The log from its beginning, gap-free and in order, with the events of now; ends after the answer."""
        state = RequestState(subjects.as_id(request_id))
        is_known = state.request_id in self._sent
        following = Following(self.bus, state.request_id, is_known=is_known, has_events=True)
        async with aclosing(following.updates()) as updates:
            async for update in updates:
                if isinstance(update, Entry):
                    apply(state, update)
                yield update
                if state.answer is not None:
                    return

    async def results(self, request_id: str) -> AsyncGenerator[Result]:
        """Each result that counts, as it lands; ends with the answer."""
        state = RequestState(subjects.as_id(request_id))
        following = Following(self.bus, state.request_id, is_known=state.request_id in self._sent)
        async with aclosing(following.updates()) as updates:
            async for update in updates:
                if not isinstance(update, Entry):
                    continue
                apply(state, update)
                body = update.body
                if isinstance(body, Result) and state.is_counted(body):
                    yield body
                if state.answer is not None:
                    return

    async def answer(self, request_id: str, timeout: float | None = None) -> Answer:
        """Wait for the answer: `timeout` seconds, else until some seconds after the request's deadline.

        Raises TimeoutError, without a timeout of its own NoAnswer, which says what is missing; the request goes on.
        Raises Invalid when no such request is known.
        """
        request_id = subjects.as_id(request_id)
        if timeout is None:
            return await self.in_time(request_id, self._answer(request_id))
        try:
            async with asyncio.timeout(timeout):
                return await self._answer(request_id)
        except TimeoutError:
            raise TimeoutError(f"no answer to {request_id} within {timeout:g} s") from None

    async def in_time(self, request_id: str, work: Coroutine[object, object, T]) -> T:
        """What some work gives that waits for an answer; NoAnswer when that is overdue."""
        known = self._sent.get(request_id)
        return await in_time(work, Expected(self.bus, request_id, self.usual_deadline_seconds, self.team, known))

    async def view(self, request_id: str) -> RequestView:
        """How the request and its tasks stand now, each with a status and a reason."""
        return await view(self.bus, subjects.as_id(request_id))

    async def timeline(self, request_id: str) -> Timeline:
        """What has happened to the request so far, step by step."""
        return await read_timeline(self.bus, subjects.as_id(request_id))

    async def close(self) -> None:
        await self.bus.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _answer(self, request_id: str) -> Answer:
        # Whose answer counts depends on who took the request last, and on nothing else.
        state = RequestState(request_id)
        is_known = request_id in self._sent
        following = Following(self.bus, request_id, is_known=is_known, kinds=(Taken.kind, Answer.kind))
        async with aclosing(following.updates()) as updates:
            async for update in updates:
                if isinstance(update, Entry):
                    apply(state, update)
                if state.answer is not None:
                    return state.answer
        raise BrokerAway("the connection is closed")

    def _remember(self, request_id: str, deadline: float) -> None:
        self._sent[request_id] = deadline
        if len(self._sent) > MAX_REMEMBERED:
            self._sent.popitem(last=False)

    async def _check_id(self, request_id: str, subject: str, request: Request) -> None:
        """Whoever asks something else under a used id would get the answer to what was asked before."""
        state = await self.state(request_id)
        before = state.answer.request_hash if state.answer else state.request_hash
        body = request.body()
        headers = {h.BODY_REF: reference_of(body)} if len(body) > MAX_INLINE else None
        if before and before != h.request_hash(subject, headers, body):
            raise Invalid(f"{request_id} was used before for another request, whose answer stands; take another", "id")

    async def _check_deadline(self, request: Request) -> None:
        if request.deadline_seconds is None:
            return
        if self._longest_deadline is None:
            self._longest_deadline = await queues.longest_deadline(self.bus)
        longest = self._longest_deadline
        if not math.isfinite(request.deadline_seconds) or request.deadline_seconds > longest:
            raise Invalid(
                f"{request.deadline_seconds:g} s are more than the {longest:g} s that this installation allows "
                "(half the age of the stream RESULTS)",
                "deadline_seconds",
            )

    async def _store(self, request: Request, request_id: str, team: str) -> None:
        origin = Origin(request_id, self.bus.sender, team=team)
        give_up = time.monotonic() + GIVE_UP_AFTER_SECONDS
        while True:
            try:
                await self.bus.store(request, origin, give_up_after=NO_STREAM_SECONDS)
                return
            except NoStream:
                known = ", ".join(await queues.teams_provisioned(self.bus)) or "none"
                raise Invalid(
                    f"no team {team!r} is provisioned; teams: {known} (`muster provision` adds one)", "team"
                ) from None
            except BrokerAway:
                if self.bus.is_closed or time.monotonic() > give_up:
                    raise


def _own_tracing(instance: str, settings: TraceSettings) -> Tracing:
    """The client's own spans, unless the application traces by itself; what is wrong with them costs no request."""
    if application_tracer() is not None:
        return OFF
    try:
        return Tracing.start("client", instance, settings)
    except (ImportError, Misconfigured) as error:
        log.warning("the client opens no spans: %s", error)
        return OFF
