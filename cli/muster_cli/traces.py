"""The spans of what is asked from the command line: with an endpoint set, the publish is the root of its trace."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from muster_bus import telemetry
from muster_bus.process.service import CLOSE_SECONDS, stop_within
from muster_client import Client


@asynccontextmanager
async def traced(client: Client, otel_env: Mapping[str, str]) -> AsyncGenerator[None]:
    """Export the spans of this process, the last ones on the way out."""
    telemetry.start("client", client.bus.sender.instance, otel_env)
    try:
        yield
    finally:
        await stop_within(asyncio.to_thread(telemetry.stop), CLOSE_SECONDS, "the exporter")
