"""What the cached tools of a request returned: for its workers, and only until there is no room or an hour is over.

Nobody depends on it: what cannot be read or written in time is taken for forgotten.
"""

import asyncio
import hashlib
import logging

from muster_bus.buckets.kv import Bucket
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError

log = logging.getLogger("muster.bus")

BUCKET = "tool_outputs"
MAX_BYTES = 256 * 1024  # of one output
READ_SECONDS = 1.0
WRITE_SECONDS = 1.0
_DIGEST = 32  # bytes at the beginning: what was changed on the way is none of ours


class ToolOutputs:
    """Those of one request."""

    def __init__(self, bus: Bus, request_id: str) -> None:
        self._bucket = Bucket(bus, BUCKET)
        self._request_id = request_id

    async def get(self, key: str) -> str | None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                found = await self._bucket.get(f"{self._request_id}.{key}")
            return None if found is None else _opened(key, found.data)
        except (TimeoutError, MusterError, UnicodeDecodeError) as error:
            log.debug("an output of a tool could not be looked up: %s", error)
            return None

    async def put(self, key: str, output: str) -> None:
        body = _sealed(key, output)
        if len(body) > MAX_BYTES:
            return
        try:
            await self._bucket.put(f"{self._request_id}.{key}", body, give_up_after=WRITE_SECONDS)
        except MusterError as error:
            log.debug("an output of a tool could not be kept: %s", error)


def _sealed(key: str, output: str) -> bytes:
    text = output.encode(errors="surrogatepass")
    return hashlib.sha256(key.encode() + text).digest() + text


def _opened(key: str, body: bytes) -> str | None:
    text = body[_DIGEST:]
    is_whole = body[:_DIGEST] == hashlib.sha256(key.encode() + text).digest()
    return text.decode(errors="surrogatepass") if is_whole else None
