"""Makes the HTTP application; FastAPI is imported in this folder only."""

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from muster_bus.process.version import version
from muster_coordinator.api import conflicts, events, metrics, probes, problems, replies, requests, watching
from muster_coordinator.api.redaction import Redaction

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator

INDEX = {
    "service": "muster coordinator",
    "openapi": "/openapi.json",
    "docs": "/docs",
    "paths": [
        "POST /v1/requests",
        "GET /v1/requests",
        "GET /v1/requests/{id}",
        "GET /v1/requests/{id}/events",
        "GET /v1/requests/{id}/answer?wait=SECONDS",
        "POST /v1/requests/{id}/cancel",
        "POST /v1/requests/{id}/reply",
        "POST /v1/requests/{id}/note",
        "GET /v1/workers",
        "GET /v1/conflicts?request=&task=&kind=&worker=&limit=&after=",
        "GET /v1/errors",
        "GET /v1/overview",
        "GET /metrics",
        "GET /healthz",
        "GET /readyz",
    ],
}


def make_app(coordinator: "Coordinator") -> FastAPI:
    """The application that answers for this coordinator."""
    app = FastAPI(title="Muster", version=version(), redoc_url=None, telemetry=_telemetry(coordinator))
    problems.add_handlers(app, coordinator)
    app.add_middleware(Redaction)

    @app.get("/", include_in_schema=False)
    async def index() -> dict[str, Any]:
        return INDEX

    for module in (probes, requests, replies, events, watching, metrics, conflicts):
        app.include_router(module.routes(coordinator))
    return app


def _telemetry(coordinator: "Coordinator") -> TelemetryConfig:
    """One span for each request that is no probe, through the coordinator's own provider, and nothing inside it."""
    provider = coordinator.bus.tracing.provider
    return {
        "tracer_provider": provider,
        "tracing": provider is not None,
        "operation_spans": False,
        "metrics": False,
        "logs": False,
        "auto_configure": False,
        "exclude": lambda scope: scope.get("path") in probes.PATHS,
    }
