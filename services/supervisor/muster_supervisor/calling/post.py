"""One HTTP POST to an address that was checked: no second look-up, no redirect, no proxy, nothing kept of the reply.

Our own few lines over asyncio, because they connect to exactly the address that they are given while the certificate
and `Host` are those of the name; a library would look the name up again, and then it may stand for another address.
"""

import asyncio
import re
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from muster_protocol.calling.addresses import Target
from muster_protocol.calling.retry_after import asked_seconds

CONNECT_SECONDS = 5.0
WHOLE_SECONDS = 20.0
MAX_HEAD = 64 * 1024  # of a reply; its body is not read
MAX_INTERIM = 5  # replies such as `100 Continue` before the one that counts
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?:[ \r]|$)")


class Reply(NamedTuple):
    """What the receiver says."""

    status: int
    asked_seconds: float | None  # of peace before the next try


class NoReply(Exception):
    """The receiver could not be reached, or said nothing that is HTTP."""


async def post(
    target: Target, addresses: list[str], headers: Mapping[str, str], body: bytes, tls: ssl.SSLContext
) -> Reply:
    """Send a body to the first of the addresses that takes a connection; NoReply says what went wrong."""
    try:
        async with asyncio.timeout(WHOLE_SECONDS):
            return await _exchange(target, addresses, _head(target, headers, len(body)) + body, tls)
    except TimeoutError:
        raise NoReply(f"no reply within {WHOLE_SECONDS:g} s") from None
    except ssl.SSLError as error:
        raise NoReply(f"no TLS with it: {error.reason or type(error).__name__}") from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        text = getattr(error, "strerror", None)
        raise NoReply(f"no reply: {text or type(error).__name__}") from None


async def _exchange(target: Target, addresses: list[str], message: bytes, tls: ssl.SSLContext) -> Reply:
    reader, writer = await _connect(target, addresses, tls)
    try:
        writer.write(message)
        await writer.drain()
        return await _reply(reader)
    finally:
        writer.transport.abort()  # `close` would wait for a receiver that does not end the connection either


async def _connect(
    target: Target, addresses: list[str], tls: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context, name = (tls, target.host) if target.is_https else (None, None)
    last: OSError | None = None
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(
                    address, target.port, limit=MAX_HEAD, ssl=context, server_hostname=name
                )
        except TimeoutError:
            last = TimeoutError(0, f"no connection within {CONNECT_SECONDS:g} s")
        except OSError as error:
            last = error
    if isinstance(last, TimeoutError):
        raise NoReply(str(last.strerror))
    raise last or OSError("no address")


def _head(target: Target, headers: Mapping[str, str], length: int) -> bytes:
    fields = {"Host": target.named, **headers, "Content-Length": str(length), "Connection": "close"}
    lines = [f"POST {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _reply(reader: asyncio.StreamReader) -> Reply:
    for _ in range(MAX_INTERIM):
        first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        found = _STATUS.match(first)
        if found is None:
            raise NoReply("its reply is not HTTP/1.1")
        if (status := int(found[1])) >= 200:
            retry_after, date = _field(lines, b"retry-after"), _field(lines, b"date")
            return Reply(status, asked_seconds(retry_after, date, time.time()))
    raise NoReply("it only sends interim replies")


def _field(lines: list[bytes], name: bytes) -> str | None:
    for line in lines:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            with suppress(UnicodeDecodeError):
                return value.strip().decode("ascii")
    return None
