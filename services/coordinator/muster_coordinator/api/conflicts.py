"""What was assigned, started or finished twice, as the bucket has it: all coordinators say the same."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from muster_bus.buckets.conflicts import page_of_conflicts
from muster_protocol.conflict import Conflict, ConflictKind
from muster_protocol.subjects import as_id

if TYPE_CHECKING:
    from muster_coordinator.coordinator import Coordinator


def routes(coordinator: "Coordinator") -> APIRouter:
    """Conflicts, newest first; `after` is what the page before named as `next`."""
    router = APIRouter()

    @router.get("/v1/conflicts")
    async def conflicts(
        request: str | None = None,
        task: str | None = None,
        kind: ConflictKind | None = None,
        worker: str | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        after: Annotated[int | None, Query(ge=1)] = None,
    ) -> dict[str, Any]:
        def is_wanted(record: Conflict) -> bool:
            return (
                (request is None or record.request_id == as_id(request))
                and (task is None or record.task_id == task or task in record.tasks)
                and (kind is None or kind in record.kinds)
                and (worker is None or any(side.worker == worker for side in record.sides))
            )

        within = None if request is None else as_id(request)
        page = await page_of_conflicts(coordinator.bus, limit, after, is_wanted, within)
        return {"conflicts": [record.model_dump(mode="json") for record in page.records], "next": page.after}

    return router
