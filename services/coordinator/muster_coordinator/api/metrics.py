"""Numbers for Prometheus."""

from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

PROMETHEUS = "text/plain; version=0.0.4"


def routes(coordinator: "Coordinator") -> APIRouter:
    """`/metrics`: what results came to, and how many requests there are."""
    router = APIRouter()
    overview = coordinator.observer.overview

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(overview.numbers.text(overview.counts()), media_type=PROMETHEUS)

    return router
