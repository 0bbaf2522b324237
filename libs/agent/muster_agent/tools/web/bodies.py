"""The body of an HTTP reply: out of its chunks, unpacked, and never more than so many bytes of it."""

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from muster_agent.calling.wire import Head, NoReply

MAX_BODY = 2_000_000  # bytes, packed and unpacked; what is longer is cut
MAX_CHUNKS = 200_000  # a server that sends single bytes
_PART = 64 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")


async def read_body(head: Head, reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """The bytes, and whether there were more."""
    encoding = (head.field("content-encoding") or "").lower()
    if encoding not in _ENCODINGS:
        raise NoReply(f"its reply is encoded as {encoding[:40]!r}, which it was not asked for")
    unpacking = Unpacking(is_packed=encoding not in ("", "identity"))
    read = 0
    async with aclosing(_parts(head, reader)) as parts:
        async for part in parts:
            unpacking.add(part[: MAX_BODY - read])
            read += len(part)
            if read > MAX_BODY or unpacking.is_full:
                return bytes(unpacking.body), True
    return bytes(unpacking.body), False


class Unpacking:
    """Unpacks bytes as they come; what a few bytes unpack to beyond the limit is never made."""

    def __init__(self, *, is_packed: bool) -> None:
        self.body = bytearray()
        self.is_full = False
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB) if is_packed else None

    def add(self, part: bytes) -> None:
        room = MAX_BODY - len(self.body)
        if self._unpack is None:
            self.body += part[:room]
            self.is_full |= len(part) > room
            return
        try:
            self.body += self._unpack.decompress(part, room + 1)  # 0 would mean: without a limit
        except zlib.error as error:
            raise NoReply(f"its reply cannot be unpacked: {error}") from None
        if len(self.body) > MAX_BODY:
            self.is_full = True
            del self.body[MAX_BODY:]


async def _parts(head: Head, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    if head.status in (204, 304):
        return
    if (head.field("transfer-encoding") or "").lower() == "chunked":
        async for part in _chunks(reader):
            yield part
        return
    length = head.field("content-length")
    left = int(length) if length is not None and length.isdecimal() and len(length) < 19 else None
    while left is None or left > 0:
        part = await reader.read(_PART if left is None else min(left, _PART))
        if not part:
            if left:
                raise NoReply(f"its reply ended {left:,} bytes too early")
            return
        left = None if left is None else left - len(part)
        yield part


async def _chunks(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    for _ in range(MAX_CHUNKS):
        line = await reader.readuntil(b"\r\n")
        size = -1
        with suppress(ValueError):
            size = int(line.split(b";")[0].strip()[:9], 16)
        if size < 0:
            raise NoReply("its reply is not in chunks, though it says so")
        if size == 0:
            return
        while size:
            part = await reader.readexactly(min(size, _PART))
            size -= len(part)
            yield part
        await reader.readexactly(2)
    raise NoReply(f"its reply has more than {MAX_CHUNKS:,} chunks")
