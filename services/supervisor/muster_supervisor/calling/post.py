"""One HTTP POST of a callback to an address that was checked; nothing is kept of the reply but what it says of it."""

import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple

from muster_agent.calling.wire import exchange, message
from muster_protocol.calling.addresses import Target
from muster_protocol.calling.retry_after import asked_seconds

WHOLE_SECONDS = 20.0


class Reply(NamedTuple):
    """What the receiver says."""

    status: int
    asked_seconds: float | None  # of peace before the next try


async def post(
    target: Target, addresses: list[str], headers: Mapping[str, str], body: bytes, tls: ssl.SSLContext
) -> Reply:
    """Send a body to the first of the addresses that takes a connection; NoReply says what went wrong."""
    sent = message("POST", target, headers, body)
    async with exchange(target, addresses, sent, tls, WHOLE_SECONDS) as (head, _):  # the body is not read
        return Reply(head.status, asked_seconds(head.field("retry-after"), head.field("date"), time.time()))
