"""The turns of one task in the stream TURNS: read as a whole, written by compare-and-set, purged with their request."""

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping

from nats.errors import Error as NatsError

from muster_bus.connection import Bus
from muster_bus.publish import CompareAndSetLost, Stored
from muster_bus.receive import opened
from muster_protocol import headers as h
from muster_protocol import subjects
from muster_protocol.errors import Invalid, Retryable
from muster_protocol.messages import TURN_KINDS, TurnBody
from muster_protocol.sender import Origin
from muster_protocol.turns.fold import TaskTurns, TurnAt, fold_turns

log = logging.getLogger("muster.bus")

LOOKS = 20  # the winner's commit takes a millisecond; when its leader died there is none
LOOK_SECONDS = 0.05
RETRY_SECONDS = 0.5
PURGE_SECONDS = 2.0


class TurnsOfTask:
    """What is stored on the subject of one task."""

    def __init__(self, bus: Bus, request_id: str, task_id: str, carrier: Mapping[str, str] | None = None) -> None:
        self._bus = bus
        self._request_id, self._task_id = request_id, task_id
        self._subject = subjects.turns(request_id, task_id)
        self._carrier = carrier

    async def read(self) -> TaskTurns:
        """All of it as the stream's leader has it; what cannot be read is reported, and only takes up its place."""
        entries: list[TurnAt] = []
        last = 0
        for raw in await self._bus.read(self._subject, from_leader=True):
            last = raw.sequence
            try:
                body = (await opened(self._bus, raw, TURN_KINDS, self._request_id)).body
            except Invalid:
                continue
            entries.append(TurnAt(raw.sequence, body))
        turns = fold_turns(entries)
        turns.last_sequence = last
        return turns

    async def append(self, body: TurnBody, after: int) -> int | None:
        """Store an entry if none came after that one; returns its sequence. None: another one did."""
        origin = self._bus.origin(self._request_id, nonce=secrets.token_hex(8))
        try:
            stored = await self._until_stored(body, origin, after)
            if not stored.is_duplicate:
                return stored.sequence
        except CompareAndSetLost:
            log.debug("%s: something was stored after %d", self._subject, after)
        return await self._own_after(after, body.id_for(origin))

    async def _until_stored(self, body: TurnBody, origin: Origin, after: int) -> Stored:
        while True:
            try:
                return await self._bus.store(body, origin, expected=after, carrier=self._carrier)
            except Retryable as reason:  # a large body that the object store does not take now
                log.warning("… %s  not stored yet: %s", self._subject, reason)
                await asyncio.sleep(RETRY_SECONDS)

    async def _own_after(self, after: int, message_id: str) -> int | None:
        """The sequence of our own entry if it is the next one after all: its first acknowledgement may be lost."""
        for _ in range(LOOKS):
            if found := await self._bus.read(self._subject, after, from_leader=True):
                return found[0].sequence if found[0].headers.get(h.MESSAGE_ID) == message_id else None
            await asyncio.sleep(LOOK_SECONDS)
        return None


async def purge_turns(bus: Bus, request_id: str) -> None:
    """Remove the turns of a request that is answered. What is left over goes by its age."""
    subject = subjects.turns(request_id, "*")
    wanted = json.dumps({"filter": subject}).encode()
    try:
        api = f"$JS.API.STREAM.PURGE.{subjects.stream_of(subject)}"
        await bus.nc.request(api, wanted, timeout=PURGE_SECONDS)
    except (TimeoutError, NatsError) as error:
        log.debug("the turns of request %s were not removed: %s", request_id, error)
