"""One HTTP exchange with an address that was checked: no second look-up, no redirect, no proxy.

Our own few lines over asyncio, because they connect to exactly the address that they are given while the certificate
and `Host` are those of the name; a library would look the name up again, and then it may stand for another address.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from muster_protocol.calling.addresses import Target
from muster_protocol.errors import Retryable

CONNECT_SECONDS = 5.0
MAX_HEAD = 64 * 1024  # of a reply
MAX_INTERIM = 5  # replies such as `100 Continue` before the one that counts
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?:[ \r]|$)")


class Head(NamedTuple):
    """The status of a reply and its fields, as they came."""

    status: int
    lines: list[bytes]

    def field(self, name: str) -> str | None:
        """The first value of a field; None if it is not there or is not plain."""
        for line in self.lines:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.encode():
                with suppress(UnicodeDecodeError):
                    return value.strip().decode("ascii")
        return None


class NoReply(Retryable):
    """The receiver could not be reached, or said nothing that is HTTP."""

    error_class = "network"


@asynccontextmanager
async def exchange(
    target: Target, addresses: list[str], message: bytes, tls: ssl.SSLContext, seconds: float
) -> AsyncGenerator[tuple[Head, asyncio.StreamReader]]:
    """Send a message to the first of the addresses that takes a connection; the head of the reply, and what follows.

    NoReply says what went wrong, also while what follows is read.
    """
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await _connect(target, addresses, tls)
            try:
                writer.write(message)
                await writer.drain()
                yield await _head(reader), reader
            finally:
                writer.transport.abort()  # `close` would wait for a receiver that does not end the connection either
    except TimeoutError:
        raise NoReply(f"no reply within {seconds:g} s") from None
    except ssl.SSLError as error:
        raise NoReply(f"no TLS with it: {error.reason or type(error).__name__}") from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        text = getattr(error, "strerror", None)
        raise NoReply(f"no reply: {text or type(error).__name__}") from None


def message(method: str, target: Target, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """The bytes of one request, after which the connection ends."""
    length = {} if method == "GET" else {"Content-Length": str(len(body))}
    fields = {"Host": target.named, **headers, **length, "Connection": "close"}
    lines = [f"{method} {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


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


async def _head(reader: asyncio.StreamReader) -> Head:
    for _ in range(MAX_INTERIM):
        first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        found = _STATUS.match(first)
        if found is None:
            raise NoReply("its reply is not HTTP/1.1")
        if (status := int(found[1])) >= 200:
            return Head(status, lines)
    raise NoReply("it only sends interim replies")
