"""The installation as a whole: lists of requests, workers and errors, and their numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from muster_bus.broker.queues import counts_of
from muster_bus.buckets.breakers import shown_breakers
from muster_bus.buckets.conflicts import count_conflicts
from muster_bus.buckets.limits import shown_limits
from muster_bus.buckets.workers import live_workers
from muster_coordinator.queries import errors, listed
from muster_protocol.sender import worker_name
from muster_protocol.status_words import RequestStatus
from muster_protocol.subjects import ALL_TASKS, lane_of

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator


def by_tag(counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """How many tasks each tag has in each lane, waiting or being worked on; what has none is left out."""
    found: dict[str, dict[str, int]] = {}
    for subject, count in sorted(counts.items()):
        tag, lane = lane_of(subject)
        found.setdefault(tag, {})[lane] = count
    return found


def routes(coordinator: "Coordinator") -> APIRouter:
    """Lists and numbers for people and dashboards that watch the installation."""
    router = APIRouter()
    observer = coordinator.observer

    @router.get("/v1/requests")
    async def requests(
        limit: Annotated[int, Query(ge=1, le=1000)] = 100, status: RequestStatus | None = None
    ) -> dict[str, Any]:
        await coordinator.refresh_waiting()
        newest = observer.overview.newest()
        total = len(newest) if status is None else sum(summary.status is status for summary in newest)
        return {"requests": await listed(coordinator.client, observer.overview, limit, status), "total": total}

    @router.get("/v1/workers")
    async def listed_workers() -> dict[str, Any]:
        cards = await live_workers(coordinator.bus)
        rows = [card.model_dump(mode="json", exclude={"roles"}) for card in cards]
        return {"workers": [{**row, "name": worker_name(card.name)} for row, card in zip(rows, cards, strict=True)]}

    @router.get("/v1/errors")
    async def listed_errors(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> dict[str, Any]:
        return {"errors": await errors(coordinator.bus, limit)}

    @router.get("/v1/overview")
    async def overview() -> dict[str, Any]:
        workers, waiting = await live_workers(coordinator.bus), await counts_of(coordinator.bus, ALL_TASKS)
        served = {tag for card in workers for tag in card.tags}
        return {
            "requests": observer.overview.counts(),
            "workers": len(workers),
            "unserved_tags": sorted({lane_of(subject)[0] for subject in waiting} - served),
            "queues": by_tag(waiting),
            "breakers": await shown_breakers(coordinator.bus, coordinator.bus.clock.now()),
            "rate_limits": await shown_limits(coordinator.bus, coordinator.bus.clock.now()),
            "conflicts": await count_conflicts(coordinator.bus),
            "errors": len(await errors(coordinator.bus, 1000)),
        }

    return router
