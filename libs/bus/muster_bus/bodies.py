"""Large bodies travel by reference: the bytes are stored in the object store under their own hash."""

import asyncio
import hashlib

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError
from nats.js.object_store import ObjectStore

from muster_bus.broker.nats_repairs import UNREADABLE
from muster_bus.read_stream import read_subject
from muster_protocol import headers as h
from muster_protocol.errors import BrokerAway, Invalid, Retryable

BUCKET = "bodies"
MAX_INLINE = 512 * 1024
MAX_BODY = 64 * 1024 * 1024
TRIES = 5


def reference_of(body: bytes) -> str:
    """What stands in a message for a body that lies elsewhere."""
    return f"{hashlib.sha256(body).hexdigest()}.{len(body)}"


class Bodies:
    """Puts and gets bodies of more than MAX_INLINE bytes."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._js = nc.jetstream(timeout=5)
        self._bucket: ObjectStore | None = None

    async def put(self, body: bytes) -> str:
        """Store the bytes; returns their reference, the same for the same bytes."""
        if len(body) > MAX_BODY:
            raise Invalid(f"the body has {len(body)} bytes; the most is {MAX_BODY}", h.BODY_REF)
        name = hashlib.sha256(body).hexdigest()
        reason: Exception | None = None
        for _ in range(TRIES):
            try:
                await (await self._open()).put(name, body)
                if await self._fetch(name) == body:  # a byte may have changed on the wire
                    return reference_of(body)
                reason = Invalid(f"the stored body does not match {name}", h.BODY_REF)
            except (TimeoutError, NatsError, JetStreamError, *UNREADABLE) as error:
                reason = error
                await asyncio.sleep(0.2)
        raise Retryable(f"a large body could not be stored: {reason}")

    async def get(self, reference: str) -> bytes:
        """Fetch the bytes and check them against their hash."""
        name, _, size = reference.partition(".")
        if len(name) != 64 or len(size) > 9 or not size.isdecimal() or int(size) > MAX_BODY:
            raise Invalid(f"{reference[:80]!r} is not <sha256>.<bytes>", h.BODY_REF)
        reason: Exception | None = None
        for _ in range(TRIES):
            try:
                body = await self._fetch(name)
                if hashlib.sha256(body).hexdigest() == name:
                    return body
                reason = None
            except NotFoundError:
                raise Invalid(f"no body is stored under {name}", h.BODY_REF) from None
            except (TimeoutError, NatsError, JetStreamError, BrokerAway, *UNREADABLE) as error:
                reason = error
            await asyncio.sleep(0.2)
        if reason is not None:
            raise Retryable(f"a large body could not be fetched: {reason}")
        raise Invalid(f"the stored body does not match {name}", h.BODY_REF)

    async def _fetch(self, name: str) -> bytes:
        """The chunks as the stream holds them: nats-py's own `get` waits for ever for one that is gone."""
        info = await (await self._open()).get_info(name)
        if not info.nuid or not info.nuid.isalnum() or (info.size or 0) > MAX_BODY:
            raise Invalid(f"{name} is no body of at most {MAX_BODY} bytes", h.BODY_REF)
        chunks = await read_subject(self._nc, f"$O.{BUCKET}.C.{info.nuid}", from_leader=True)
        return b"".join(chunk.data for chunk in chunks)

    async def _open(self) -> ObjectStore:
        if self._bucket is None:
            self._bucket = await self._js.object_store(BUCKET)
        return self._bucket
