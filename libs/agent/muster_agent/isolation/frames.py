"""The bytes between a worker and a process that runs functions: a mark, a length, and JSON of that length."""

import asyncio
import struct

MARK = b"\0mu\1"  # whatever else a function writes to this connection is recognized at once
MAX_BYTES = 64 << 20  # as large as the largest body that the broker keeps
_LENGTH = struct.Struct(">I")


class Garbage(Exception):
    """What came is no frame."""


def framed(body: bytes) -> bytes:
    return MARK + _LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The body of the next frame; IncompleteReadError when the other side is gone, Garbage if it is none."""
    mark = await reader.readexactly(len(MARK))
    if mark != MARK:
        raise Garbage(f"no frame begins with {mark!r}")
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MAX_BYTES:
        raise Garbage(f"no frame has {length} bytes")
    return await reader.readexactly(length)
