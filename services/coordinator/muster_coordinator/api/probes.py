"""Whether the coordinator is alive and ready, for whoever restarts it and sends it traffic."""

from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from muster_bus.process.health import ALIVE_BEAT_SECONDS

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

NOT_ALIVE = f"the main loop has not run for {ALIVE_BEAT_SECONDS:g} s\n"
PATHS = ("/healthz", "/readyz")


def routes(coordinator: "Coordinator") -> APIRouter:
    """`/healthz` and `/readyz`; without a broker the coordinator is alive and not ready."""
    router = APIRouter(include_in_schema=False)

    @router.get("/healthz")
    async def healthz() -> Response:
        is_alive = coordinator.health.is_alive
        return PlainTextResponse("ok\n" if is_alive else NOT_ALIVE, 200 if is_alive else 503)

    @router.get("/readyz")
    async def readyz() -> Response:
        is_ready = coordinator.health.is_ready
        reason = f"not ready: {coordinator.health.trouble}\n" if coordinator.health.trouble else "not ready\n"
        return PlainTextResponse("ok\n" if is_ready else reason, 200 if is_ready else 503)

    return router
