"""The spans of what is asked from the command line: with an endpoint set, the publish is the root of its trace."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from muster_bus import telemetry
from muster_bus.service import stop_within
from muster_client import Client

STOP_SECONDS = 4.0  # the exporter gives up after three


@asynccontextmanager
async def traced(client: Client) -> AsyncGenerator[None]:
    """Export the spans of this process, the last ones on the way out."""
    telemetry.start("client", client.bus.sender.instance)
    try:
        yield
    finally:
        await stop_within(asyncio.to_thread(telemetry.stop), STOP_SECONDS, "the exporter")
