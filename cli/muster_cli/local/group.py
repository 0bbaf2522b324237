"""The services of one process, started and stopped together."""

import asyncio
from collections.abc import Sequence

from muster_bus.process.service import Service, stop_within


class ServiceGroup:
    """Several services as one; each has its own connection."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self.bus = services[0].bus

    @property
    def last_turn_at(self) -> float:
        return min(service.last_turn_at for service in self._services)

    async def start(self) -> None:
        await asyncio.gather(*(service.start() for service in self._services))

    async def stop(self, grace_seconds: float) -> None:
        stops = (stop_within(service.stop(grace_seconds), grace_seconds, "a service") for service in self._services)
        await asyncio.gather(*stops)
        await asyncio.gather(*(service.bus.close() for service in self._services[1:]))
